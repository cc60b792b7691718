"""Sums that triggers keep: after any write they are what another engine counts from the rows with the same definitions."""

import random
import threading
from collections.abc import Iterator
from contextlib import closing, nullcontext
from uuid import uuid4

import msgspec
import psycopg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from deploy.local.postgres import Postgres
from deploy.local.process import wait_until
from services.finalizer.serving import published
from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import Rebuilt, Slice
from services.finalizer.serving.refused import hash_of
from services.finalizer.transforms.forgotten import Forgotten
from services.finalizer.transforms.rollups import coarser, counted, minutes, wide
from services.finalizer.transforms.views import parse
from shared.codec import VIEW
from shared.measures import COUNTED, HISTOGRAMS, SUMMED
from shared.schemas.view import View
from shared.statistics.histogram import bucket_of
from tests.integration.finalizer.expecting import hour_of
from tests.integration.finalizer.finalizing import MORNING_MS, newest
from tests.integration.finalizer.served import MEASURES, total
from tests.integration.serving.hot import generated, kept, recounted, write

pytestmark = pytest.mark.integration


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    return postgres.create_database(f"hot_{uuid4().hex}")


@pytest.fixture
def serving(dsn: str) -> Iterator[Serving]:
    with closing(Serving(dsn, away_seconds_max=20, stop=threading.Event())) as opened:
        opened.open()
        opened.keep_views(0)
        yield opened


@pytest.fixture
def connection(serving: Serving, dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as opened:
        yield opened


def test_sums_are_a_recount_of_the_rows_after_every_revision_tombstone_and_move(
    connection: psycopg.Connection,
) -> None:
    chance = random.Random(7)
    sent: list[View] = []
    for batch in range(25):
        names = [f"view-{chance.randrange(60)}" for _ in range(chance.randrange(1, 30))]
        # Revisions come late, early and again.
        views = [
            generated(random.Random(f"{name} {number}"), name, number)
            for name in names
            if (number := chance.randrange(1, 6))
        ]
        write(connection, views)
        sent += views
        assert kept(connection) == recounted(newest(sent)), batch
    assert connection.execute("SELECT count(*) FROM serving.sums WHERE views = 0").fetchone() == (0,)
    marked = set(connection.execute("SELECT hour, customer_id FROM serving.hot_slices").fetchall())
    assert {(hour_of(view), view.customer_id) for view in newest(sent) if not view.deleted} <= marked
    assert marked <= {(hour_of(view), view.customer_id) for view in sent}


def test_sums_follow_whoever_deletes_or_changes_rows_and_can_be_counted_again(
    serving: Serving, connection: psycopg.Connection
) -> None:
    chance = random.Random(8)
    views = [generated(chance, f"view-{number}", viewer_id=f"viewer {number % 7}") for number in range(80)]
    write(connection, views)

    assert serving.forget_views("acme", ["viewer 3"], [], at_ms=MORNING_MS + 10**9) > 0
    left = [view for view in views if (view.customer_id, view.viewer_id) != ("acme", "viewer 3")]
    assert kept(connection) == recounted(left)
    # Topic views is read again.
    write(connection, views)
    assert kept(connection) == recounted(left)

    connection.execute("UPDATE serving.views SET watch_ms = 5, view_end_ms = view_end_ms + 3600000, deleted = false")
    changed = [
        msgspec.structs.replace(view, watch_ms=5, view_end_ms=view.view_end_ms + 3_600_000, deleted=False)
        for view in left
    ]
    assert kept(connection) == recounted(changed)

    connection.execute("UPDATE serving.sums SET views = views + 1; DELETE FROM serving.histograms WHERE bucket > 0")
    connection.execute("SELECT serving.recount(0, 1000000)")
    assert kept(connection) == recounted(changed)


def test_a_database_of_an_earlier_day_loses_what_was_forgotten_since(
    serving: Serving, connection: psycopg.Connection
) -> None:
    chance, at_ms = random.Random(10), MORNING_MS + 10**9
    views = [
        *(generated(chance, f"view-{n}", customer="acme", viewer_id=f"viewer {n % 5}") for n in range(60)),
        *(generated(chance, f"user-{n}", customer="acme", viewer_user_id="viewer 3") for n in range(10)),
        *(generated(chance, f"gone-{n}", customer="gone") for n in range(10)),
        # The customer came back.
        *(generated(chance, f"back-{n}", customer="gone", first_append_ms=at_ms + 1) for n in range(3)),
    ]
    before = Forgotten("acme", hash_of("viewer 1"), at_ms)
    serving.refuse([before])
    write(connection, views)
    hour = at_ms // 3_600_000
    slices = [Slice(hour, customer) for customer in ("acme", "gone")]
    groups = [total(one, [1] * len(MEASURES)) for one in slices]
    serving.publish(Rebuilt(slices, MEASURES, groups), checkpoint_id="test", batch_id=0)
    minutes = (
        "INSERT INTO serving.live_minutes VALUES ('gone', '', %s, '{}'), ('gone', '', %s, '{}'), ('acme', '', 1, '{}')"
    )
    connection.execute(minutes, (at_ms // 60_000, at_ms // 60_000 + 1))
    missing = [Forgotten("acme", hash_of("viewer 3"), at_ms), Forgotten("gone", b"", at_ms)]

    serving.forget_again([before, *missing, *missing])

    left = [
        one
        for one in views
        if "viewer 1" not in (one.viewer_id, one.viewer_user_id)
        and "viewer 3" not in (one.viewer_id, one.viewer_user_id)
        and not one.view_id.startswith("gone")
    ]
    assert kept(connection) == recounted(left)
    assert sorted(serving.forgotten()) == sorted([before, *missing])
    live = connection.execute("SELECT customer_id, minute FROM serving.live_minutes ORDER BY 1").fetchall()
    assert live == [("acme", 1), ("gone", at_ms // 60_000 + 1)]
    # Its hours are counted again from the warehouse.
    assert serving.dirty(10) == [Slice(hour, "gone")]


def test_what_is_older_than_kept_leaves_and_does_not_come_back_and_a_view_that_moves_there_leaves_too(
    serving: Serving, connection: psycopg.Connection
) -> None:
    chance = random.Random(9)
    views = [generated(chance, f"view-{number}", deleted=False) for number in range(80)]
    write(connection, views)
    middle = sorted(map(hour_of, views))[40]

    serving.expire(rollups_before_ms=None, views_since_hour=middle)

    young = [view for view in views if hour_of(view) >= middle]
    assert kept(connection) == recounted(young)
    assert connection.execute("SELECT count(*) FROM serving.views").fetchone() == (len(young),)
    write(connection, views)
    assert connection.execute("SELECT count(*) FROM serving.views").fetchone() == (len(young),)
    # Its next revision counts in an hour that is kept no more.
    moved = generated(random.Random(1), young[0].view_id, 2, last_append_ms=young[0].first_append_ms, view_end_ms=0)
    if hour_of(moved) < middle:
        write(connection, [moved])
        assert kept(connection) == recounted(young[1:])


def test_old_rows_are_found_by_their_index_and_all_go_where_none_are_kept(
    serving: Serving, connection: psycopg.Connection
) -> None:
    chance = random.Random(11)
    write(connection, [generated(chance, f"view-{number}", deleted=False) for number in range(400)])
    connection.execute("ANALYZE serving.views")
    plan = connection.execute(f"EXPLAIN {published.EXPIRE_BEFORE}", (1, 10_000)).fetchall()
    assert [line for (line,) in plan if "views_by_hour" in line]
    held: list[int] = []

    class Turn(nullcontext[None]):
        def __enter__(self) -> None:
            held.append(1)

    serving.expire(rollups_before_ms=None, views_since_hour=None, turn=Turn())
    assert connection.execute("SELECT count(*) FROM serving.views").fetchone() == (0,)
    # Rollups, the hour, and the rows: a batch may come between any two.
    assert len(held) == 3


def test_rows_come_back_after_a_clock_that_was_ahead(serving: Serving, connection: psycopg.Connection) -> None:
    chance = random.Random(12)
    views = [generated(chance, f"view-{number}") for number in range(60)]
    write(connection, views)
    connection.execute("INSERT INTO serving.positions VALUES ('topic', 0, 60, 0, 60, 0)")
    connection.execute("UPDATE serving.coverage SET is_whole = true")
    coverage = "SELECT since_hour, is_whole FROM serving.coverage"
    serving.keep_views(MORNING_MS // 3_600_000 + 9_600)
    assert kept(connection) == recounted([])

    serving.keep_views(1)

    # All of them count that are here; the rest comes with the topic, and until then nobody reads them.
    assert kept(connection) == recounted(views)
    assert connection.execute("SELECT count(*) FROM serving.positions").fetchone() == (0,)
    assert connection.execute(coverage).fetchone() == (1, False)
    write(connection, views)
    assert kept(connection) == recounted(views)
    # A clock that is a little behind changes nothing.
    connection.execute("INSERT INTO serving.positions VALUES ('topic', 0, 60, 0, 60, 0)")
    serving.keep_views(100)
    serving.keep_views(99)
    assert connection.execute(coverage).fetchone() == (100, False)
    assert connection.execute("SELECT count(*) FROM serving.positions").fetchone() == (1,)


def test_a_view_that_is_written_while_its_viewer_is_forgotten_does_not_stay(
    serving: Serving, connection: psycopg.Connection, dsn: str
) -> None:
    chance = random.Random(10)
    first, second = (generated(chance, name, customer="acme", viewer_id="viewer") for name in ("first", "second"))
    forgets = threading.Thread(target=serving.forget_views, args=("acme", ["viewer"], []), kwargs={"at_ms": 1 << 50})
    with psycopg.connect(dsn) as writer, writer.transaction():
        write(writer, [first])
        forgets.start()
        # It waits for the writer, and another writer waits for it.
        _until_waiting(connection, 1)
        later = threading.Thread(target=_write_on_its_own, args=(dsn, second))
        later.start()
        _until_waiting(connection, 2)
    forgets.join()
    later.join()
    assert connection.execute("SELECT view_id FROM serving.views").fetchall() == []


def _write_on_its_own(dsn: str, view: View) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        write(connection, [view])


def _until_waiting(connection: psycopg.Connection, count: int) -> None:
    def waiting() -> bool:
        found = connection.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database AS d ON d.oid = database"
            " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
        ).fetchone()
        return found == (count,)

    wait_until(waiting, 60, f"{count} wait for the lock")


def test_a_writer_waits_for_another_and_both_are_counted(dsn: str, connection: psycopg.Connection) -> None:
    views = [generated(random.Random(number), f"view-{number % 40}", 1 + number // 40) for number in range(200)]

    def worker(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as mine:
            chance = random.Random(number)
            for _ in range(20):
                write(mine, chance.sample(views, 30))

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    write(connection, views)
    assert kept(connection) == recounted(newest(views))


def test_spark_counts_the_same_with_the_same_definitions(spark: SparkSession, connection: psycopg.Connection) -> None:
    views = [generated(random.Random(number), f"view-{number}") for number in range(400)]
    write(connection, views)
    records = spark.createDataFrame(
        [("views", 0, number, bytearray(b"key"), bytearray(VIEW.encode(view))) for number, view in enumerate(views)],
        "topic string, partition int, offset long, key binary, value binary",
    ).withColumn("timestamp", sf.current_timestamp())
    by_minute = minutes(counted(parse(records).where("reason IS NULL")), (("source",),))
    by_hour = coarser(by_minute, "hour")

    def as_printed(row: object) -> tuple[object, ...]:
        width_ms = {"minute": 60_000, "hour": 3_600_000}[row["grain"]]  # type: ignore[index]
        place = (row["grain"], row["start_ms"] // width_ms, row["customer_id"], row["members"][0])  # type: ignore[index]
        return (*place, *(int(row[name]) for name in (*COUNTED, *SUMMED)))  # type: ignore[index]

    rows = [*wide(by_minute).collect(), *wide(by_hour).collect()]
    sums, histograms = kept(connection)
    assert sorted(map(as_printed, rows)) == sums
    of_hours = [row for row in rows if row["grain"] == "hour"]
    assert histograms == sorted(
        (row["start_ms"] // 3_600_000, row["customer_id"], row["members"][0], metric, bucket, count)
        for row in of_hours
        for metric in HISTOGRAMS
        for bucket, count in row[f"{metric}_histogram"].items()
    )


def test_buckets_of_postgres_are_those_of_the_one_formula(connection: psycopg.Connection) -> None:
    values = [0, 1, 2, *range(3, 30_000, 7), *(round(1.02**power) for power in range(1, 1_500) if 1.02**power < 9e12)]
    found = connection.execute("SELECT v, serving.bucket(v) FROM unnest(%s::bigint[]) AS v", (values,)).fetchall()
    assert [(value, bucket_of(value)) for value, _ in found] == found
