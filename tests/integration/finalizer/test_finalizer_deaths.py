"""Wherever the finalizer dies, each record counts once: on a real broker, Spark, Delta and Postgres."""

import os
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from deploy.local.postgres import Postgres
from shared.codec import VIEW
from shared.schemas.view import View
from shared.topics import BEACONS, LATE, REJECTED, VIEWS
from tests.integration.finalizer.expecting import expect_raw, expect_truth, hour_of
from tests.integration.finalizer.finalizing import (
    HOUR_MS,
    RUN_SECONDS_MAX,
    START_SECONDS_MAX,
    Installation,
    Topic,
    a_view,
    jvm_of,
    newest,
    raw_records,
    wait_for_exit,
)
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.brokers import broker_with_topics

pytestmark = [pytest.mark.integration, pytest.mark.timeout(2400)]

#: Records that are no view, and why. One that could not be recognised would stop every later batch.
UNUSABLE = (
    (b"[", "undecodable"),
    (b"\xff", "undecodable"),
    (VIEW.encode(a_view("garbled")).replace(b"garbled", b"\xff"), "undecodable"),
    (VIEW.encode(a_view("lettered")).replace(b'"revision":1', b'"revision":"1"'), "undecodable"),
    (b'{"schema_version":9}', "unknown_version"),
    (b'{"customer_id":"acme"}', "invalid"),
    (b"", "invalid"),
    (VIEW.encode(a_view("foreign")).replace(b'"mux"', b'"vhs"'), "invalid"),
    (VIEW.encode(a_view("endless", watch_ms=2**60)), "invalid"),
    (VIEW.encode(a_view("backwards", rebuffer_ms=-1)), "invalid"),
    (VIEW.encode(a_view("before-time", first_append_ms=-(2**63))), "invalid"),
    (VIEW.encode(a_view("nobody", customer="no:body")), "invalid"),
)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """A broker of one's own, so that topic `views` holds what the test has put there."""
    with broker_with_topics(tmp_path / "broker", [VIEWS, BEACONS, LATE, REJECTED]) as running:
        yield running.bootstrap


@pytest.fixture
def installation(tmp_path: Path, bootstrap: str, postgres: Postgres, warm_jvm: WarmJvm) -> Installation:
    """An empty warehouse and serving database."""
    return Installation(tmp_path, bootstrap, postgres.create_database(f"finalizer_{uuid4().hex}"), jvm=warm_jvm)


def test_each_record_counts_once_wherever_the_driver_dies(installation: Installation) -> None:
    topic = Topic(installation.bootstrap, "processor")
    chance = random.Random(11)
    revisions = _revisions(views=90)
    raw = raw_records(40)
    topic.send(revisions, also=[value for value, _ in UNUSABLE] * 2)
    topic.send_raw(raw)
    topic.send([a_view(f"aborted-{i}") for i in range(50)], commit=False)
    topic.send_raw(raw_records(20), commit=False)

    # At every step of a batch, with several batches and several transactions each.
    for point in ("unparsed", "marked", "merged", "raw_appended"):
        if point == "raw_appended":
            # Those of before may have been taken by the runs of before.
            fresh = raw_records(10, first=50)
            topic.send_raw(fresh)
            raw += fresh
        assert installation.run_once(crash_at=point, offsets_per_trigger_max="150") == -signal.SIGKILL, point
    assert installation.run_once(slices_max="30") == 0
    expect_truth(installation, newest(revisions))
    expect_raw(installation, raw)
    # The same bytes twice are two records.
    assert sorted(installation.table("unparsed", "SELECT value, reason FROM t")) == sorted(UNUSABLE * 2)

    # Half the views move to another hour, some out of an hour that nobody else is in: after the merge only the dirty
    # slices still know of the old places. Some are taken back, and older revisions of those come again; some are of long ago.
    known = newest(revisions)
    moved = [_moved(view) for view in known if view.view_id == "alone" or int(view.view_id[5:]) % 2]
    # Not of those: one revision never says two things.
    stay = {view.view_id for view in known} - {view.view_id for view in moved}
    gone = [_taken_back(view) for view in known if view.view_id in stay][3:40:4]
    long_ago = [
        a_view(f"old-{n}", customer="customer_1", day=20_400, first_append_ms=20_400 * 86_400_000) for n in range(5)
    ]
    later = chance.sample(moved + gone + long_ago, len(moved + gone + long_ago))
    for number, point in enumerate(("merged", "rebuilt", "published")):
        topic.send(later[number::3] + revisions[number::9])
        assert installation.run_once(crash_at=point, slices_max="1") == -signal.SIGKILL, point

    # And wherever it happens to be, while more comes.
    with installation.running("stream", trigger_seconds="0.2", offsets_per_trigger_max="40") as child:
        child.wait_until(installation.is_ready, START_SECONDS_MAX, "ready", every=0.25)
        # Before the first record: the stream may be through with all of them before this process has its turn again.
        began = installation.batches()
        more = raw_records(60, first=100)
        for number in range(3):
            topic.send(revisions[number::5], commit=number != 1)
            topic.send_raw(more[number::3])
        child.wait_until(lambda: installation.batches() > began + chance.randrange(3), RUN_SECONDS_MAX, "batches")
        # Of its two processes the other one, as the system does it that has run out of memory: Python ends by itself.
        os.kill(jvm_of(child), signal.SIGKILL)
        wait_for_exit(child)
        assert child.exit_code == 1
    # A checkpoint that was lost, too: everything of topic views is read again, into tables that have it. Of another start there
    # is what Spark writes before the first batch is planned, with a place to begin that no longer holds.
    checkpoint = installation.folder / "new-checkpoint"
    shutil.copytree(installation.folder / "checkpoint" / "bronze", checkpoint / "bronze")
    shutil.rmtree(checkpoint / "bronze" / "commits")
    for noted in (*(checkpoint / "bronze" / "offsets").iterdir(), *(checkpoint / "bronze").glob("*metadata*")):
        noted.unlink()
    maintained = "SELECT name, at_ms FROM finalizer.maintained"
    before = dict(installation.serving(maintained))
    assert installation.run_once(checkpoint_dir=str(checkpoint), maintenance_seconds="0.001") == 0
    # The round that is due is done once all has landed.
    assert {name for name, at_ms in installation.serving(maintained) if at_ms > before[name]} == before.keys()

    expect_truth(installation, newest(revisions + later))
    expect_raw(installation, raw + more)
    emptied = {hour_of(view) for view in newest(revisions)} - {hour_of(view) for view in newest(revisions + moved)}
    assert emptied, "no hour was left by all its views: the test tests less than it should"
    assert installation.table("unparsed", "SELECT count(*) FROM t") == [(2 * len(UNUSABLE),)]
    rejected = installation.table("rejected", "SELECT DISTINCT reason FROM t")
    assert rejected == [("invalid",)]


def _revisions(views: int) -> list[View]:
    """Up to three revisions a view over three customers and four hours, shuffled, a third of them twice."""
    chance = random.Random(7)
    made = [a_view("alone", customer="customer_0", hour=-20)]
    for number in range(views):
        # Client clocks are payload: one in ten is days off.
        hour = chance.randrange(4) if number % 10 else 100
        for revision in range(1, chance.randint(1, 3) + 1):
            made += [_revision(chance, number, revision, hour)]
    again = chance.sample(made, len(made) // 3)
    return chance.sample(made + again, len(made + again))


def _revision(chance: random.Random, number: int, revision: int, hour: int) -> View:
    return a_view(
        f"view-{number}",
        customer=f"customer_{number % 3}",
        revision=revision,
        hour=hour,
        startup_ms=chance.randrange(5_000) if number % 7 else None,
        playback_failed=number % 11 == 0,
        startup_failed=number % 77 == 0,
        cdn=chance.choice(["fast", "near", None]),
        country=chance.choice(["DE", "FR"]),
        device=chance.choice(["TV", None]),
        ebvs=number % 7 == 0 and number % 11 != 0,
        watch_ms=chance.randrange(600_000),
        playing_ms=chance.randrange(600_000),
        rebuffer_count=chance.randrange(4),
        rebuffer_ms=chance.randrange(3_000) * (number % 2),
        bitrate_integral=chance.randrange(10**15),
        bitrate_time_ms=chance.randrange(600_000),
        duplicate_count=chance.randrange(3),
        custom={"plan": "gold"},
        playback_ranges=[[0, 5], [7, 9]],
    )


def _moved(view: View) -> View:
    """The view's next revision, which ended two hours later."""
    return msgspec.structs.replace(
        view,
        revision=view.revision + 1,
        view_end_ms=view.view_end_ms + 2 * HOUR_MS,
        last_append_ms=view.last_append_ms + HOUR_MS,
    )


def _taken_back(view: View) -> View:
    """The view's next revision, which says that it was none."""
    return msgspec.structs.replace(view, revision=view.revision + 1, deleted=True)
