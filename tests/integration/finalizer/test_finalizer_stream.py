"""The finalizer as a process, on a real broker, Spark, Delta and Postgres: while it runs, and when its topic is another one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from deploy.local.postgres import Postgres
from deploy.local.process import Child, wait_until
from deploy.topics import create_topics
from shared.topics import BEACONS, LATE, REJECTED, VIEWS
from tests.integration.finalizer.expecting import expect_truth
from tests.integration.finalizer.finalizing import (
    RUN_SECONDS_MAX,
    START_SECONDS_MAX,
    Installation,
    Topic,
    a_view,
    newest,
    wait_for_exit,
)
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.brokers import broker_with_topics
from tests.integration.parts.installed import kafka

pytestmark = [pytest.mark.integration, pytest.mark.timeout(2400)]


@pytest.fixture
def installation(tmp_path: Path, postgres: Postgres, warm_jvm: WarmJvm) -> Iterator[Installation]:
    """An empty warehouse and serving database, and a broker whose topic `views` holds what the test has put there."""
    dsn = postgres.create_database(f"finalizer_{uuid4().hex}")
    with broker_with_topics(tmp_path / "broker", [VIEWS, BEACONS, LATE, REJECTED]) as broker:
        yield Installation(tmp_path, broker.bootstrap, dsn, jvm=warm_jvm)


def looked_until(child: Child, condition: Callable[[], bool], seconds: float, what: str) -> None:
    """A look at the database, or at metrics, costs more CPU time than what is waited for."""
    child.wait_until(condition, seconds, what, every=0.25)


def test_a_running_finalizer_lands_what_comes_refuses_a_second_one_and_ends_on_sigterm(
    installation: Installation,
) -> None:
    topic = Topic(installation.bootstrap, "processor")
    first = [a_view(f"v{i}", watch_ms=i) for i in range(20)]
    with installation.running("stream", jvm=installation.jvm, maintenance_seconds="12") as child:
        looked_until(child, installation.is_ready, START_SECONDS_MAX, "ready")
        topic.send(first)
        looked_until(child, lambda: _views_served(installation) == 20, RUN_SECONDS_MAX, "first views served")

        # Beside batches every table of the stream is compacted and vacuumed, and the stream goes on.
        maintained = 'playhead_finalizer_maintenance_seconds_count{table="views"} '
        looked_until(child, lambda: maintained in installation.metrics(), RUN_SECONDS_MAX, "maintained")
        # The batch says of itself how long it took only when its views are served.
        for name in ("lag_records", "stalled_records", "batch_records", "batch_seconds_count"):
            exposed = f"playhead_finalizer_{name}"
            looked_until(child, lambda exposed=exposed: exposed in installation.metrics(), RUN_SECONDS_MAX, exposed)

        second = Installation(installation.folder, installation.bootstrap, installation.dsn)
        assert second.run_once() == 1
        assert "in use by the process" in (installation.folder / "finalizer.log").read_text()

        # A batch of nothing but what was taken back is a batch all the same: the next one begins after it.
        looked_until(
            child,
            lambda: "playhead_finalizer_views_total 20.0" in installation.metrics(),
            RUN_SECONDS_MAX,
            "first batch counted",
        )
        batches = installation.batches()
        topic.send([a_view(f"aborted-{i}") for i in range(50)], commit=False)
        looked_until(child, lambda: installation.batches() > batches, RUN_SECONDS_MAX, "the aborted records are passed")
        looked_until(child, installation.is_ready, START_SECONDS_MAX, "still ready")

        later = [a_view(f"w{i}", customer="other", hour=1) for i in range(5)]
        topic.send([*later, a_view("v3", revision=2, watch_ms=1_000, hour=2)])
        looked_until(child, lambda: _views_served(installation) == 25, RUN_SECONDS_MAX, "later views served")
        # Counted after the batch is done, so a moment after it can be seen.
        counted = "playhead_finalizer_views_total 26.0"
        looked_until(child, lambda: counted in installation.metrics(), RUN_SECONDS_MAX, counted)
        # What is still marked when it is asked to stop is counted again only at its next start.
        looked_until(child, lambda: _slices_marked(installation) == 0, RUN_SECONDS_MAX, "every slice is counted again")

        child.ask_to_stop()
        wait_for_exit(child)
        assert child.exit_code == 0

    expect_truth(installation, newest([*first, *later, a_view("v3", revision=2, watch_ms=1_000, hour=2)]))

    # A topic that was recreated is refused, with what to do.
    admin = AdminClient({"bootstrap.servers": installation.bootstrap})
    for answer in admin.delete_topics([VIEWS.name]).values():
        answer.result(30)
    wait_until(lambda: VIEWS.name not in admin.list_topics(timeout=10).topics, 30, "the topic is gone")
    create_topics(kafka(installation.bootstrap), [VIEWS])
    assert installation.run_once() == 1
    lines = (installation.folder / "finalizer.log").read_text().splitlines()
    last = next(line for line in reversed(lines) if "cannot_run" in line)
    assert "was created before topic views was recreated" in last


def _slices_marked(installation: Installation) -> int:
    return len(installation.serving("SELECT * FROM finalizer.dirty_slices"))


def _views_served(installation: Installation) -> int:
    exists = installation.serving("SELECT to_regclass('serving.rollups_hourly') IS NOT NULL")
    if exists != [(True,)]:
        return 0
    return int(installation.serving("SELECT coalesce(sum(views), 0) FROM serving.rollups_hourly")[0][0])
