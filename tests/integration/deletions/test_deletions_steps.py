"""Requests to delete data in the tests' own Spark session: through a death after each step, and of a whole customer."""

import argparse
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec
import psycopg
import pydantic
import pytest

from deploy.local.postgres import Postgres
from services.accounts.core.deletions import STEPS, Step
from services.accounts.store import schema
from services.collector.customers.table import MIGRATIONS_DIR
from services.finalizer.driver import Driver, clock_ms
from services.finalizer.jobs.deletions import asking, forgetting_records
from services.finalizer.jobs.deletions.learned import Learned
from services.finalizer.jobs.deletions.steps import Deletions
from services.finalizer.serving import reprocess_lock
from services.finalizer.serving.deletion_requests import DeletionRequests
from services.finalizer.warehouse import landed
from services.finalizer.warehouse.landed import Ends
from services.rim.database.migrations import migrate
from shared import codec
from shared.schemas.apis.change import ApiChange
from shared.topics import ALERT_RULES, API_CALLS, API_CHANGES, BEACONS, LATE, RECORDING_INDEX, Topic
from tests.integration.deletions.alert_rows import FOUND, NAMES, WITHDRAWN, add_alerts, alerts_holding
from tests.integration.deletions.deleting import recorded, rows_of
from tests.integration.finalizer.expecting import expect_truth
from tests.integration.finalizer.finalizing import newest
from tests.integration.finalizer.warehouse.warehousing import Died, Warehouse, beacons_of, finished, viewer_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


class Slots:
    """What stands for the processor: it has deleted its state at the second look."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.sessions: list[str] = []
        self.looks = 0

    def delete(
        self, request_id: str, customer_id: str, keys: Sequence[bytes], sessions: Sequence[str]
    ) -> dict[str, int] | None:
        self.keys, self.sessions, self.looks = list(keys), list(sessions), self.looks + 1
        return {BEACONS.name: len(self.keys)} if self.looks > 1 else None


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """What applications were told to forget, by topic and key; all have done it."""
    keys: list[tuple[str, bytes]] = []

    def produce(
        settings: object, request_id: str, records: Sequence[tuple[Topic, bytes]]
    ) -> tuple[dict[str, int], Ends]:
        keys.extend((topic.name, key) for topic, key in records)
        return {}, {}

    monkeypatch.setattr(forgetting_records, "produce", produce)
    return keys


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch, told: object) -> dict[tuple[str, int], int]:
    """Where topics end."""
    ends: dict[tuple[str, int], int] = {}

    def ends_of(settings: object, topics: Sequence[str]) -> Ends:
        return {place: end for place, end in ends.items() if place[0] in topics}

    monkeypatch.setattr(landed, "ends_of", ends_of)
    return ends


def ask(warehouse: Warehouse, *arguments: str) -> str:
    """As the command does."""
    parser = argparse.ArgumentParser()
    asking.add_to(parser.add_subparsers(), print)
    return asking.ask(warehouse.settings, parser.parse_args(["forget", "--customer", "acme", *arguments]))


def executor_of(driver: Driver, slots: Slots) -> Deletions:
    """As the stream makes it; live numbers of what was deleted are long over."""
    requests = DeletionRequests(driver.settings.accounts_database)
    learned = Learned(driver.settings, requests)
    return Deletions(driver, requests, slots, learned, clock_ms=lambda: clock_ms() + 60_000)  # type: ignore[arg-type]


def steps_of(warehouse: Warehouse, request_id: str) -> dict[str, tuple[str, dict[str, int]]]:
    with psycopg.connect(warehouse.installation.dsn) as connection:
        rows = connection.execute(
            "SELECT step, state, found FROM accounts.deletion_steps WHERE deletion_id = %s", (request_id,)
        ).fetchall()
    return {step: (state, found) for step, state, found in rows}


def texts(folder: Path) -> dict[str, str]:
    """Every row of every file of a warehouse, and the bytes of its logs, by path."""
    found = {str(path.relative_to(folder)): rows_of(path) for path in folder.rglob("*.parquet")}
    logs = folder.rglob("_delta_log/*.json")
    return found | {str(path.relative_to(folder)): path.read_bytes().decode(errors="replace") for path in logs}


def holding(folder: Path, pattern: str) -> list[str]:
    """The files in which something matches."""
    return [path for path, text in texts(folder).items() if re.search(pattern, text)]


def test_a_request_goes_on_after_a_death_behind_each_of_its_steps(
    warehouse: Warehouse, wanted: dict[tuple[str, int], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beacons = beacons_of("abc")
    live = [msgspec.structs.replace(one, viewer_id=viewer_of(one.view_id)) for one in finished(beacons)]
    warehouse.land_raw(beacons)
    warehouse.land_raw([one for one in beacons if one.view_id == "b"], topic=LATE.name)
    warehouse.land(live)
    objects = tmp_path / "objects"
    for session in ("hers", "another"):
        (objects / "acme" / session).mkdir(parents=True)
        (objects / "acme" / session / "000000-aa").write_bytes(session.encode())
    driver = warehouse.with_settings(applications="recordings", objects=str(objects), deletion_settle_seconds=0.0)
    (index,) = driver.settings.row_topics
    warehouse.land_rows(index, [recorded("hers"), recorded("another")])
    dsn = warehouse.installation.dsn
    schema.migrate(dsn)
    add_alerts(dsn, "acme", "viewer b")
    add_alerts(dsn, "acme_2", "viewer b")
    request_id = ask(warehouse, "--viewer", "viewer b", "--session", "hers")
    assert ask(warehouse, "--viewer", "viewer b", "--session", "hers") == request_id

    # Nothing is deleted before the warehouse has what was sent before.
    slots = Slots()
    wanted["beacons", 0] = 5
    first = executor_of(driver, slots)
    assert first.advance() == 1
    assert steps_of(warehouse, request_id)[Step.FOUND] == ("running", {})
    _note_landed(Path(warehouse.settings.checkpoint_dir) / "bronze", 7, {"beacons": {"0": 4}})
    assert first.advance() == 1
    _note_landed(Path(warehouse.settings.checkpoint_dir) / "bronze", 8, {"beacons": {"0": 5}})
    died_behind: set[int] = set()

    def reach(here: str) -> None:
        done = sum(state == "done" for state, _ in steps_of(warehouse, request_id).values())
        if here == "deletion_step" and done not in died_behind:
            died_behind.add(done)
            raise Died(here)

    monkeypatch.setattr(warehouse.dies, "reach", reach)
    left = 1
    while left:
        # A process of its own each time.
        lives = executor_of(driver, slots)
        with suppress(Died):
            left = lives.advance()
    # The first step was done above, and the last one is the query service's.
    assert len(died_behind) == len(STEPS) - 2
    found = steps_of(warehouse, request_id)
    assert {step for step, (state, _) in found.items() if state != "done"} == {Step.EXPORTS.value}
    assert slots.sessions == ["hers"]
    assert b"acme:b" in slots.keys
    assert not any(one.startswith((b"acme:a", b"acme:c")) for one in slots.keys)
    assert all(gone_ms > 0 for gone_ms in found[Step.TOPICS][1].values())
    assert {BEACONS.name, "video_views.changelog"} <= set(found[Step.TOPICS][1])

    # What people wrote: the comment goes, and of a rule's name the id. The rule is given to the processor again.
    of_names = {f"names_of_{name}": count for name, count in NAMES.items()}
    assert found[Step.LEARNED][1] == {"comments": 1, **of_names}
    assert alerts_holding(dsn, "acme(?!_2).*viewer b|viewer b.*acme(?!_2)") == {}
    assert alerts_holding(dsn, r"Of \(deleted\)") == NAMES
    assert alerts_holding(dsn, "Of viewer b") == NAMES
    assert alerts_holding(dsn, "again|Somebody")["comments"] == 3
    assert alerts_holding(dsn, r"acme,4,3") == {"environments": 1}

    kept = [one for one in live if one.view_id != "b"]
    expect_truth(warehouse.installation, newest(kept))
    place = Path(warehouse.settings.warehouse_dir)
    assert holding(place, "viewer b(?! and)") == []
    assert holding(place, "viewer b and a")
    assert [path for path in holding(place, "['\"]hers['\"]") if "_delta_log" not in path] == []
    assert not (objects / "acme" / "hers").exists()
    assert (objects / "acme" / "another" / "000000-aa").read_bytes() == b"another"
    with psycopg.connect(warehouse.installation.dsn) as connection:
        listed = "\n".join(asking.Asked(driver.settings, request_id).lines())
        assert "viewer b" not in listed
        assert "gone by" in listed
        kept_id = connection.execute("SELECT viewer FROM accounts.deletions WHERE id = %s", (request_id,)).fetchone()
        # Until exports, the last step, are done.
        assert kept_id == ("viewer b",)


def test_a_whole_customer_is_deleted_and_nobody_else(
    warehouse: Warehouse,
    wanted: dict[tuple[str, int], int],
    told: list[tuple[str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
    postgres: Postgres,
) -> None:
    beacons = beacons_of("ab")
    others = [msgspec.structs.replace(one, customer_id="acme_2") for one in beacons]
    warehouse.land_raw([*beacons, *others])
    live = [*finished(beacons), *finished(others)]
    warehouse.land(live)
    objects = Path(warehouse.settings.warehouse_dir).with_name("objects")
    for customer in ("acme", "acme_2"):
        (objects / customer / "s").mkdir(parents=True)
        (objects / customer / "s" / "000000-aa").write_bytes(b"x")
    customers = postgres.create_database(f"customers_{uuid4().hex}")
    migrate(customers, "collector", MIGRATIONS_DIR)
    with psycopg.connect(customers) as connection:
        connection.execute("INSERT INTO limits.stored VALUES ('acme', 1, 1, now()), ('acme_2', 1, 1, now())")
    driver = warehouse.with_settings(
        applications="recordings,api_schemas",
        objects=str(objects),
        deletion_settle_seconds=0.0,
        customers_dsn=pydantic.SecretStr(customers),
    )
    by_topic = {topic.name: topic for topic in driver.settings.row_topics}
    warehouse.land_rows(by_topic[RECORDING_INDEX.name], [recorded("s"), recorded("s", "acme_2")])
    changes = [_api_change(customer, "api.example") for customer in ("acme", "acme_2")]
    warehouse.land_rows(by_topic[API_CHANGES.name], changes)
    dsn = warehouse.installation.dsn
    request_id = ask(warehouse, "--whole-customer")
    add_alerts(dsn, "acme", "acme!")
    add_alerts(dsn, "acme_2", "acme_2!")
    slots = Slots()
    executor = executor_of(driver, slots)
    # Rules go before anything else, and stay counted when the process dies before it notes that the step is done.
    monkeypatch.setattr(warehouse.dies, "reach", _dies)
    assert _advance_to_death(executor) is None
    assert steps_of(warehouse, request_id)[Step.RULES] == ("running", WITHDRAWN)
    assert alerts_holding(dsn, "acme(?!_2)").keys() == {"incidents", "changes", "comments", "deliveries"}
    assert told == [(ALERT_RULES.name, b"acme")]
    monkeypatch.setattr(warehouse.dies, "reach", lambda _: None)
    slots.looks = 1
    executor = executor_of(driver, slots)
    assert executor.advance() == 1
    assert told == [(ALERT_RULES.name, b"acme")] * 2
    assert steps_of(warehouse, request_id)[Step.RULES] == ("done", WITHDRAWN)
    # Not before live numbers say nothing more of it.
    assert steps_of(warehouse, request_id)[Step.LEARNED] == ("running", {})
    # A reprocess that runs holds it up: its files would look like nobody's.
    with reprocess_lock.hold(dsn):
        assert executor.advance() == 1
    assert steps_of(warehouse, request_id)[Step.WAREHOUSE][0] == "running"
    assert executor.advance() == 0
    assert slots.sessions == ["s"]
    assert told[2:] == [(ALERT_RULES.name, b"acme"), (API_CALLS.name, b"acme:api.example")]
    learned = steps_of(warehouse, request_id)[Step.LEARNED]
    assert learned[0] == "done"
    assert {name: count for name, count in learned[1].items() if count} == FOUND
    assert alerts_holding(dsn, "acme(?!_2)") == {}
    assert alerts_holding(dsn, "acme_2") == {
        "environments": 1,
        "rules": 1,
        "rule_versions": 2,
        "incidents": 1,
        "changes": 2,
        "comments": 2,
        "deliveries": 2,
    }
    expect_truth(warehouse.installation, newest(one for one in live if one.customer_id == "acme_2"))
    place = Path(warehouse.settings.warehouse_dir)
    # Tables' logs have bounds of keys; who is refused is listed.
    left = [path for path in holding(place, r"acme(?!_2)[:'\"]") if "_delta_log" not in path]
    assert [path for path in left if not path.startswith("forgotten/")] == []
    assert holding(place, "acme_2")
    assert not (objects / "acme").exists()
    assert (objects / "acme_2" / "s" / "000000-aa").exists()
    with psycopg.connect(warehouse.installation.dsn) as connection:
        for table in ("views", "rollups", "blocks", "sums", "histograms", "hot_slices"):
            found = connection.execute(f"SELECT DISTINCT customer_id FROM serving.{table}").fetchall()
            assert ("acme",) not in found, table
    with psycopg.connect(customers) as connection:
        assert connection.execute("SELECT customer_id FROM limits.stored").fetchall() == [("acme_2",)]
    # What topic views still has does not come back.
    warehouse.land(live)
    expect_truth(warehouse.installation, newest(one for one in live if one.customer_id == "acme_2"))


def _dies(here: str) -> None:
    if here == "deletion_step":
        raise Died(here)


def _advance_to_death(executor: Deletions) -> int | None:
    with suppress(Died):
        return executor.advance()
    return None


def _api_change(customer: str, host: str) -> bytes:
    change = ApiChange(
        schema_version=1, customer_id=customer, host=host, at_ms=1, kind="learned", method="GET", path="/",
    )  # fmt: skip
    return codec.API_CHANGE.encode(change)


def _note_landed(folder: Path, batch: int, ends: dict[str, dict[str, int]]) -> None:
    """As Spark notes a batch that has ended."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(ends)}")
    (folder / "commits" / str(batch)).write_text("v1\n{}")
