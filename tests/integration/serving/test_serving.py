"""The service `serving` on a real broker and Postgres: hot rows are a recount of topic `views`, after each way to end."""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from deploy.local.broker import Broker
from deploy.local.postgres import Postgres
from deploy.local.process import wait_until
from services.finalizer.serving.database import Serving
from services.serving.comparing import compare
from services.serving.repair import repair
from services.serving.settings import ServingSettings
from shared import topics
from shared.schemas.view import View
from tests.integration.finalizer.finalizing import Topic, newest
from tests.integration.parts.installed import variables
from tests.integration.serving.hot import Service, generated, kept, recounted

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SECONDS_MAX = 240.0


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[topics.Topic]:
    return (topics.VIEWS,)


class Scene:
    """A topic, a serving database and processes of the service between them."""

    def __init__(self, broker: Broker, postgres: Postgres, folder: Path) -> None:
        self.broker = broker
        self._postgres = postgres
        self._log_file = folder / "serving.log"
        self.topic = Topic(broker.bootstrap, f"serving-{uuid4().hex}")
        self.sent: list[View] = []
        self.services: list[Service] = []
        self.dsn = ""
        self.new_database()

    def new_database(self) -> None:
        """As the finalizer makes it when it starts."""
        self.dsn = self._postgres.create_database(f"serving_{uuid4().hex}")
        with closing(Serving(self.dsn, away_seconds_max=20, stop=threading.Event())) as serving:
            serving.open()
            serving.keep_views(0)

    def send(self, *views: View, also: tuple[bytes, ...] = (), commit: bool = True) -> None:
        self.topic.send(views, also=also, commit=commit)
        if commit:
            self.sent += views

    def start(self, **settings: str) -> Service:
        service = Service(self.broker.bootstrap, self.dsn, self._log_file, **settings)
        self.services.append(service)
        return service

    def is_true(self) -> bool:
        """Whether rows and sums are those of what was sent."""
        return self.agreeing()()

    def until_true(self) -> None:
        wait_until(self.agreeing(), SECONDS_MAX, "hot rows are a recount of the topic")

    def agreeing(self) -> Callable[[], bool]:
        """Says whether rows and sums are those of what was sent by now."""
        truth = newest(self.sent)
        wanted = [(view.customer_id, view.view_id, view.revision, view.deleted) for view in truth]
        sums = recounted(truth)

        def agrees() -> bool:
            with psycopg.connect(self.dsn) as connection:
                rows = connection.execute(
                    "SELECT customer_id, view_id, revision, deleted FROM serving.views"
                ).fetchall()
                return sorted(rows) == wanted and kept(connection) == sums

        return agrees

    def query(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def scene(own_broker: Broker, postgres: Postgres, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(own_broker, postgres, tmp_path)
    yield made
    for service in made.services:
        service.child.kill()


def some(chance: random.Random, count: int = 40) -> list[View]:
    """Revisions of few views, in any order: late ones, moved ones, tombstones. A revision is always the same."""
    found = []
    for _ in range(count):
        name, revision = f"view-{chance.randrange(50)}", chance.randrange(1, 6)
        found.append(generated(random.Random(f"{name} {revision}"), name, revision))
    return found


def test_hot_rows_are_a_recount_of_the_topic_wherever_the_process_is_killed(scene: Scene) -> None:
    chance = random.Random(1)
    scene.send(*some(chance), also=(b"no view", b'{"schema_version": 99}'))
    scene.send(*some(chance), commit=False)
    for point in ("moved", "written", "committed", "moved:2", "written:2", "committed:3"):
        service = scene.start(crash_at=point, records_max="7")
        scene.send(*some(chance, 60))
        wait_until(lambda: not service.child.is_running, SECONDS_MAX, f"killed when it had {point}")  # noqa: B023
    service = scene.start()
    scene.until_true()
    # It says so at its next turn.
    wait_until(lambda: scene.query("SELECT is_whole FROM serving.coverage") == [(True,)], SECONDS_MAX, "it is whole")
    scene.send(*some(chance), commit=False)
    scene.send(generated(chance, "last"))
    scene.until_true()
    wait_until(service.is_ready, SECONDS_MAX, "it is ready")
    service.child.stop(60)
    assert service.child.exit_code == 0


def test_of_two_processes_one_that_was_paused_writes_nothing_over_the_other(scene: Scene) -> None:
    chance = random.Random(2)
    first = scene.start(crash_at="moved:2:stop")
    wait_until(first.is_ready, SECONDS_MAX, "the first reads")
    pid = first.child.pid
    scene.send(*some(chance))
    # What is sent at once may come to it in two transactions: then it stops in the second of these.
    agrees = scene.agreeing()
    wait_until(lambda: _is_stopped(pid) or agrees(), SECONDS_MAX, "its rows are right, or it stops")
    scene.send(*some(chance))
    wait_until(lambda: _is_stopped(pid), SECONDS_MAX, "it stops in the middle of a transaction")
    # The group gives its partitions away; its transaction holds up all writers, until Postgres ends it.
    second = scene.start()
    wait_until(second.is_ready, SECONDS_MAX, "the second reads")
    scene.send(*some(chance))
    scene.until_true()
    os.kill(pid, signal.SIGCONT)
    # Both are of the group now and share the partitions.
    scene.send(*some(chance, 200))
    scene.until_true()
    wait_until(lambda: first.is_ready() and second.is_ready(), SECONDS_MAX, "both read")
    scene.send(*some(chance, 200))
    scene.until_true()


def test_a_database_that_was_lost_is_filled_again_from_the_topic_and_pages_wait_until_it_is(scene: Scene) -> None:
    chance = random.Random(3)
    scene.send(*some(chance, 100))
    service = scene.start()
    scene.until_true()
    service.child.kill()
    scene.send(*some(chance, 100))

    scene.new_database()
    assert scene.query("SELECT is_whole FROM serving.coverage") == [(False,)]
    scene.start(records_max="20")
    scene.until_true()
    wait_until(lambda: scene.query("SELECT is_whole FROM serving.coverage") == [(True,)], SECONDS_MAX, "it is whole")


def test_repair_mends_sums_and_brings_rows_that_are_missing(scene: Scene) -> None:
    chance = random.Random(4)
    scene.send(*some(chance, 100))
    scene.start()
    scene.until_true()
    wait_until(lambda: scene.query("SELECT is_whole FROM serving.coverage") == [(True,)], SECONDS_MAX, "it is whole")
    differing = lambda: compare(connection, -1.0)  # noqa: E731
    environ = {"SERVING_POSTGRES_DSN": scene.dsn, **variables(scene.broker.bootstrap)}
    settings = ServingSettings.load(environ | {"SERVING_CLOSED_SECONDS": "0"})
    with psycopg.connect(scene.dsn, autocommit=True) as connection:
        # The rollups as the finalizer would have them.
        connection.execute(_ROLLUPS)
        assert differing() == []
        connection.execute("UPDATE serving.sums SET views = views + 1, watch_ms = 0 WHERE customer_id = 'acme'")
        assert {customer for _, customer in differing()} == {"acme"}

        lines = list(repair(settings, refill=False))

        assert lines[1].startswith("0 ")
        assert scene.is_true()
        assert scene.query("SELECT * FROM serving.hot_slices") == []

        connection.execute("DELETE FROM serving.views WHERE customer_id = 'other'")
        connection.execute("INSERT INTO finalizer.swapped VALUES (2)")
        assert {customer for _, customer in differing()} == {"other"}
        assert list(repair(settings, refill=False))[-1].startswith("The finalizer counts")
        dirty = "SELECT DISTINCT customer_id FROM finalizer.dirty_slices"
        assert scene.query(dirty) == [("other",)]
        connection.execute("DELETE FROM finalizer.dirty_slices")

        assert "rows deleted" in next(iter(repair(settings, refill=True)))
        scene.until_true()
        wait_until(
            lambda: scene.query("SELECT is_whole FROM serving.coverage") == [(True,)], SECONDS_MAX, "whole again"
        )
        assert differing() == []


#: The rollups by client that these sums of views are, which the tables of a warehouse would have.
_ROLLUPS = """
    INSERT INTO serving.rollups
    SELECT d.grain, to_timestamp(s.start * 3600), s.customer_id, d.dimensions,
           CASE d.dimensions WHEN '' THEN '{}' ELSE ARRAY[s.source] END,
           s.views, s.started, s.startup_failures, s.playback_failures, s.exits_before_start, s.views_dropped,
           s.watch_ms, s.playing_ms, s.rebuffer_count, s.rebuffer_ms, s.seek_count, s.seek_ms, s.bitrate_integral,
           s.bitrate_time_ms, s.beacons, s.duplicates, '',
           coalesce(b.buckets, '{}'), coalesce(b.counts, '{}'), coalesce(r.buckets, '{}'), coalesce(r.counts, '{}')
    FROM serving.sums AS s
    CROSS JOIN (VALUES ('hour', 'source')) AS d (grain, dimensions)
    LEFT JOIN (SELECT hour, customer_id, source, array_agg(bucket ORDER BY bucket) AS buckets,
                      array_agg(count ORDER BY bucket) AS counts
               FROM serving.histograms WHERE metric = 'startup_ms' GROUP BY 1, 2, 3) AS b
           ON b.hour = s.start AND b.customer_id = s.customer_id AND b.source = s.source
    LEFT JOIN (SELECT hour, customer_id, source, array_agg(bucket ORDER BY bucket) AS buckets,
                      array_agg(count ORDER BY bucket) AS counts
               FROM serving.histograms WHERE metric = 'rebuffer_ms' GROUP BY 1, 2, 3) AS r
           ON r.hour = s.start AND r.customer_id = s.customer_id AND r.source = s.source
    WHERE s.grain = 'hour'
"""


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")
