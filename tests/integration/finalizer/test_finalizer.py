"""The finalizer on a real broker, Spark, Delta and Postgres: one row a view, exact rollups, after any crash."""

import os
import random
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pyspark
import pytest

from deploy.local.broker import Broker
from deploy.local.paths import SPARK_JARS
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child
from deploy.topics import create_topics
from shared.codec import VIEW
from shared.schemas.view import View
from shared.settings import Settings
from shared.topics import BEACONS, LATE, REJECTED, VIEWS
from tests.integration.finalizer.expecting import expect_raw, expect_truth, hour_of
from tests.integration.finalizer.finalizing import (
    HOUR_MS,
    RUN_SECONDS_MAX,
    SPARK_CLASS_PATH,
    START_SECONDS_MAX,
    Installation,
    RawRecord,
    Topic,
    a_view,
    jvm_of,
    newest,
    wait_for_exit,
)
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.brokers import broker_with_topics

pytestmark = [pytest.mark.integration, pytest.mark.timeout(2400)]

REPOSITORY = Path(__file__).parents[3]

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
    raw = _raw(40)
    topic.send(revisions, also=[value for value, _ in UNUSABLE] * 2)
    topic.send_raw(raw)
    topic.send([a_view(f"aborted-{i}") for i in range(50)], commit=False)
    topic.send_raw(_raw(20), commit=False)

    # At every step of a batch, with several batches and several transactions each.
    for point in ("unparsed", "marked", "merged", "raw_appended"):
        if point == "raw_appended":
            # Those of before may have been taken by the runs of before.
            fresh = _raw(10, first=50)
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
        child.wait_until(installation.is_ready, START_SECONDS_MAX, "ready")
        # Before the first record: the stream may be through with all of them before this process has its turn again.
        began = _batches(installation)
        more = _raw(60, first=100)
        for number in range(3):
            topic.send(revisions[number::5], commit=number != 1)
            topic.send_raw(more[number::3])
        child.wait_until(lambda: _batches(installation) > began + chance.randrange(3), RUN_SECONDS_MAX, "batches")
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
    assert installation.run_once(checkpoint_dir=str(checkpoint)) == 0

    expect_truth(installation, newest(revisions + later))
    expect_raw(installation, raw + more)
    emptied = {hour_of(view) for view in newest(revisions)} - {hour_of(view) for view in newest(revisions + moved)}
    assert emptied, "no hour was left by all its views: the test tests less than it should"
    assert installation.table("unparsed", "SELECT count(*) FROM t") == [(2 * len(UNUSABLE),)]
    rejected = installation.table("rejected", "SELECT DISTINCT reason FROM t")
    assert rejected == [("invalid",)]


def test_a_running_finalizer_lands_what_comes_refuses_a_second_one_and_ends_on_sigterm(
    installation: Installation,
) -> None:
    topic = Topic(installation.bootstrap, "processor")
    first = [a_view(f"v{i}", watch_ms=i) for i in range(20)]
    with installation.running("stream", maintenance_seconds="0.1") as child:
        child.wait_until(installation.is_ready, START_SECONDS_MAX, "ready")
        topic.send(first)
        child.wait_until(lambda: _views_served(installation) == 20, RUN_SECONDS_MAX, "first views served")

        # Beside batches every table of the stream is compacted and vacuumed, and the stream goes on.
        maintained = 'playhead_finalizer_maintenance_seconds_count{table="views"} '
        child.wait_until(lambda: maintained in installation.metrics(), RUN_SECONDS_MAX, "maintained")
        # The batch says of itself how long it took only when its views are served.
        for name in ("lag_records", "stalled_records", "batch_records", "batch_seconds_count"):
            exposed = f"playhead_finalizer_{name}"
            child.wait_until(lambda exposed=exposed: exposed in installation.metrics(), RUN_SECONDS_MAX, exposed)

        second = Installation(installation.folder, installation.bootstrap, installation.dsn)
        assert second.run_once() == 1
        assert "in use by the process" in (installation.folder / "finalizer.log").read_text()

        # A batch of nothing but what was taken back is a batch all the same: the next one begins after it.
        child.wait_until(
            lambda: "playhead_finalizer_views_total 20.0" in installation.metrics(),
            RUN_SECONDS_MAX,
            "first batch counted",
        )
        batches = _batches(installation)
        topic.send([a_view(f"aborted-{i}") for i in range(50)], commit=False)
        child.wait_until(lambda: _batches(installation) > batches, RUN_SECONDS_MAX, "the aborted records are passed")
        child.wait_until(installation.is_ready, START_SECONDS_MAX, "still ready")

        later = [a_view(f"w{i}", customer="other", hour=1) for i in range(5)]
        topic.send([*later, a_view("v3", revision=2, watch_ms=1_000, hour=2)])
        child.wait_until(lambda: _views_served(installation) == 25, RUN_SECONDS_MAX, "later views served")
        # Counted after the batch is done, so a moment after it can be seen.
        counted = "playhead_finalizer_views_total 26.0"
        child.wait_until(lambda: counted in installation.metrics(), RUN_SECONDS_MAX, counted)
        # What is still marked when it is asked to stop is counted again only at its next start.
        child.wait_until(lambda: _slices_marked(installation) == 0, RUN_SECONDS_MAX, "every slice is counted again")

        child.ask_to_stop()
        wait_for_exit(child)
        assert child.exit_code == 0

    expect_truth(installation, newest([*first, *later, a_view("v3", revision=2, watch_ms=1_000, hour=2)]))


@pytest.fixture
def views_bootstrap(tmp_path: Path) -> Iterator[str]:
    """A broker of another cluster, which has the views alone."""
    with Broker(tmp_path / "views-broker") as running:
        create_topics(Settings(kafka_bootstrap=running.bootstrap), [VIEWS])
        yield running.bootstrap


def test_it_runs_unchanged_on_a_cluster_with_the_views_from_another_kafka(
    installation: Installation, views_bootstrap: str
) -> None:
    views = [a_view(f"view-{number}", hour=number % 3, watch_ms=number) for number in range(30)]
    Topic(views_bootstrap, "mirror").send(views)
    # What the first one still has of them is not asked for.
    first = Topic(installation.bootstrap, "processor")
    first.send([a_view("of-the-first")])
    sent = _raw(12)
    first.send_raw(sent)
    home = Path(pyspark.__file__).parent
    environment = {
        **installation.environment(views_bootstrap=views_bootstrap),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
    }
    # The jars come with the job alone, as on a cluster that has none of them.
    del environment[SPARK_CLASS_PATH]
    url = f"spark://127.0.0.1:{free_port()}"
    port = url.rpartition(":")[2]

    def spark_class(name: str, *arguments: str) -> Child:
        argv = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        log = installation.folder / f"{name}-{len(started)}.log"
        return Child(name, argv, log_file=log, env=environment)

    started: list[Child] = []
    try:
        master = spark_class("master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", str(free_port()))
        started.append(master)
        master.start()
        for number in range(2):
            work = str(installation.folder / f"work-{number}")
            worker = spark_class(
                *("worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "700m", "--webui-port", "0"),
                *("--work-dir", work, url),
            )
            started.append(worker)
            worker.start()
        log = installation.folder / "master.Master-0.log"

        def workers() -> set[str]:
            """By their addresses: one that is not answered in time registers again."""
            return set(re.findall(r"Registering worker (\S+)", log.read_text()))

        master.wait_until(lambda: len(workers()) == 2, START_SECONDS_MAX, "two workers")
        jars = ",".join(map(str, sorted(SPARK_JARS.glob("*.jar"))))
        submit = Child(
            "spark-submit",
            [
                *(str(home / "bin" / "spark-submit"), "--master", url, "--jars", jars, "--driver-memory", "1g"),
                *("--conf", "spark.executor.memory=600m", "--conf", "spark.driver.host=127.0.0.1"),
                *(str(REPOSITORY / "services" / "finalizer" / "__main__.py"), "stream", "--once"),
            ],
            log_file=installation.folder / "finalizer.log",
            env=environment,
        )
        started.append(submit)
        submit.start()
        wait_for_exit(submit)
        assert submit.exit_code == 0
        assert log.read_text().count("Launching executor") >= 2, "the work was not done by the workers"
    finally:
        for child in reversed(started):
            child.kill()
    expect_truth(installation, newest(views))
    expect_raw(installation, sent)


def _batches(installation: Installation) -> float:
    name = 'playhead_finalizer_batches_total{stream="views"} '
    lines = [line for line in installation.metrics().splitlines() if line.startswith(name)]
    return float(lines[0].split()[1]) if lines else 0.0


def _slices_marked(installation: Installation) -> int:
    return len(installation.serving("SELECT * FROM finalizer.dirty_slices"))


def _views_served(installation: Installation) -> int:
    exists = installation.serving("SELECT to_regclass('serving.rollups_hourly') IS NOT NULL")
    if exists != [(True,)]:
        return 0
    return int(installation.serving("SELECT coalesce(sum(views), 0) FROM serving.rollups_hourly")[0][0])


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


def _raw(count: int, first: int = 0) -> list[RawRecord]:
    """Records of the three topics that are kept as they are, over three partitions, some with headers."""
    topics = (BEACONS.name, BEACONS.name, LATE.name, REJECTED.name)
    return [
        RawRecord(
            topics[number % 4],
            number % 3,
            f"acme:{number}".encode(),
            b"\xff%d" % number,
            (("reason", b"invalid"), ("detail", b"\xc3")) if topics[number % 4] == REJECTED.name else (),
        )
        for number in range(first, first + count)
    ]
