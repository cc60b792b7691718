"""Requests to delete data in the tests' own Spark session: through a death after each step, and of a whole customer."""

import argparse
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import duckdb
import msgspec
import psycopg
import pytest

from services.accounts.core.deletions import STEPS, Step
from services.accounts.store import schema
from services.finalizer.jobs import asking, deletions
from services.finalizer.jobs.deletions import Deletions
from services.finalizer.serving.deletion_requests import DeletionRequests
from services.finalizer.warehouse import checkpoint_lock, landed
from services.finalizer.warehouse.landed import Ends
from shared import codec
from shared.schemas.recording import RecordingRow
from shared.topics import BEACONS, LATE
from tests.integration.finalizing import expect_truth, newest
from tests.integration.warehousing import Died, Warehouse, beacons_of, finished, viewer_of

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
def wanted(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, int], int]:
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


def steps_of(warehouse: Warehouse, request_id: str) -> dict[str, tuple[str, dict[str, int]]]:
    with psycopg.connect(warehouse.installation.dsn) as connection:
        rows = connection.execute(
            "SELECT step, state, found FROM accounts.deletion_steps WHERE deletion_id = %s", (request_id,)
        ).fetchall()
    return {step: (state, found) for step, state, found in rows}


def texts(folder: Path) -> str:
    """Every row of every file of a warehouse, and the bytes of its logs."""
    found = []
    for path in folder.rglob("*.parquet"):
        with duckdb.connect() as connection:
            found.append(repr(connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()))
    found += [path.read_bytes().decode(errors="replace") for path in folder.rglob("_delta_log/*.json")]
    return "\n".join(found)


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
    warehouse.land_rows(index, [_recorded("hers"), _recorded("another")])
    schema.migrate(warehouse.installation.dsn)
    request_id = ask(warehouse, "--viewer", "viewer b", "--session", "hers")
    assert ask(warehouse, "--viewer", "viewer b", "--session", "hers") == request_id

    # Nothing is deleted before the warehouse has what was sent before.
    slots = Slots()
    wanted["beacons", 0] = 5
    first = Deletions(driver, DeletionRequests(driver.settings.accounts_database), slots)  # type: ignore[arg-type]
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
        lives = Deletions(driver, DeletionRequests(driver.settings.accounts_database), slots)  # type: ignore[arg-type]
        with suppress(Died):
            left = lives.advance()
    assert len(died_behind) == len(STEPS) - 1
    found = steps_of(warehouse, request_id)
    assert {step for step, (state, _) in found.items() if state != "done"} == {Step.EXPORTS.value}
    assert slots.sessions == ["hers"]
    assert b"acme:b" in slots.keys
    assert not any(one.startswith((b"acme:a", b"acme:c")) for one in slots.keys)
    assert all(gone_ms > 0 for gone_ms in found[Step.TOPICS][1].values())
    assert {BEACONS.name, "video_views.changelog"} <= set(found[Step.TOPICS][1])

    kept = [one for one in live if one.view_id != "b"]
    expect_truth(warehouse.installation, newest(kept))
    everything = texts(Path(warehouse.settings.warehouse_dir))
    assert not re.search("viewer b(?! and)", everything)
    assert "viewer b and a" in everything
    assert '"hers"' not in everything
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
    warehouse: Warehouse, wanted: dict[tuple[str, int], int], tmp_path: Path
) -> None:
    beacons = beacons_of("ab")
    others = [msgspec.structs.replace(one, customer_id="acme_2") for one in beacons]
    warehouse.land_raw([*beacons, *others])
    live = [*finished(beacons), *finished(others)]
    warehouse.land(live)
    objects = tmp_path / "objects"
    for customer in ("acme", "acme_2"):
        (objects / customer / "s").mkdir(parents=True)
        (objects / customer / "s" / "000000-aa").write_bytes(b"x")
    driver = warehouse.with_settings(applications="recordings", objects=str(objects), deletion_settle_seconds=0.0)
    (index,) = driver.settings.row_topics
    warehouse.land_rows(index, [_recorded("s"), _recorded("s", "acme_2")])
    request_id = ask(warehouse, "--whole-customer")
    slots = Slots()
    executor = Deletions(driver, DeletionRequests(driver.settings.accounts_database), slots)  # type: ignore[arg-type]
    # A reprocess that runs holds it up: its files would look like nobody's.
    slots.looks = 1
    with checkpoint_lock.hold(deletions.reprocessing(driver.settings)):
        assert executor.advance() == 1
    assert steps_of(warehouse, request_id)[Step.WAREHOUSE][0] == "running"
    assert executor.advance() == 0
    assert slots.sessions == ["s"]
    expect_truth(warehouse.installation, newest(one for one in live if one.customer_id == "acme_2"))
    everything = texts(Path(warehouse.settings.warehouse_dir))
    assert not re.search(r"acme(?!_2)[:'\"]", everything.replace("'acme', b", ""))
    assert "acme_2" in everything
    assert not (objects / "acme").exists()
    assert (objects / "acme_2" / "s" / "000000-aa").exists()
    with psycopg.connect(warehouse.installation.dsn) as connection:
        for table in ("views", "rollups", "blocks", "sums", "histograms", "hot_slices"):
            found = connection.execute(f"SELECT DISTINCT customer_id FROM serving.{table}").fetchall()
            assert ("acme",) not in found, table
    # What topic views still has does not come back.
    warehouse.land(live)
    expect_truth(warehouse.installation, newest(one for one in live if one.customer_id == "acme_2"))


def _note_landed(folder: Path, batch: int, ends: dict[str, dict[str, int]]) -> None:
    """As Spark notes a batch that has ended."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(ends)}")
    (folder / "commits" / str(batch)).write_text("v1\n{}")


def _recorded(session: str, customer: str = "acme") -> bytes:
    return codec.RECORDING.encode(
        RecordingRow(
            schema_version=1,
            customer_id=customer,
            session_id=session,
            sequence=0,
            sequence_last=0,
            state="stored",
            revision=1,
            at_ms=1,
            object=f"{customer}/{session}/000000-{uuid4().hex}",
        )
    )
