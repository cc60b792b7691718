"""The serving database: slices are replaced whole, older drivers are refused, a database that was away is found again."""

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from structlog.testing import capture_logs

from deploy.demo.comparing.observe import published_ms
from deploy.local.postgres import Postgres
from services.finalizer import driver
from services.finalizer.serving import reprocess_lock
from services.finalizer.serving.database import Serving
from services.finalizer.serving.fenced import Fenced, ServingAway, StatementTooSlow
from services.finalizer.serving.migrate import MIGRATIONS_DIR, migrate
from services.finalizer.serving.published import Group, Rebuilt, Slice
from services.finalizer.serving.refused import hash_of
from services.finalizer.serving.reprocess_lock import ReprocessLocked
from services.finalizer.transforms.forgotten import Forgotten
from services.rim.database import migrations
from services.serving.comparing import compare
from services.serving.rows import row_of
from shared.codec import VIEW
from shared.schemas.view import View
from shared.statistics.histogram import bucket_of
from tests.integration.finalizer.expecting import hour_of
from tests.integration.finalizer.finalizing import a_view
from tests.integration.finalizer.served import MEASURES, total

pytestmark = pytest.mark.integration


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    return postgres.create_database(f"serving_{uuid4().hex}")


@pytest.fixture
def serving(dsn: str) -> Iterator[Serving]:
    opened = _serving(dsn)
    opened.open()
    yield opened
    opened.close()


def test_a_published_slice_replaces_the_old_one_and_is_dirty_no_more(serving: Serving, dsn: str) -> None:
    here, there = Slice(491_000, "acme"), Slice(491_000, "other")
    serving.mark_dirty({here, there})
    serving.mark_dirty({here})
    serving.publish(_rebuilt([here, there], views=3), checkpoint_id="c", batch_id=7)
    serving.mark_dirty({here, there})

    serving.publish(_rebuilt([here], views=5), checkpoint_id="c", batch_id=8)

    assert serving.dirty(10) == [there]
    assert _query(
        dsn, "SELECT extract(epoch FROM hour)::int, customer_id, views FROM serving.rollups_hourly ORDER BY 2"
    ) == [
        (491_000 * 3600, "acme", 5),
        (491_000 * 3600, "other", 3),
    ]
    assert _query(dsn, "SELECT customer_id, count FROM serving.histograms_hourly ORDER BY 1") == [
        ("acme", 5),
        ("other", 3),
    ]
    assert _query(dsn, "SELECT checkpoint_id, batch_id FROM finalizer.fence") == [("c", 8)]


def test_the_moment_of_the_last_publishing_is_reported_and_none_before_the_first(serving: Serving, dsn: str) -> None:
    assert published_ms(dsn) == set()
    one = Slice(491_000, "acme")
    serving.publish(_rebuilt([one], views=1), checkpoint_id="c", batch_id=1)
    (first_ms,) = published_ms(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE finalizer.fence SET published_at = published_at - interval '1 hour'")

    serving.publish(_rebuilt([one], views=2), checkpoint_id="c", batch_id=2)

    (second_ms,) = published_ms(dsn)
    assert second_ms >= first_ms


def test_a_slice_that_has_lost_its_last_view_disappears(serving: Serving, dsn: str) -> None:
    gone = Slice(491_000, "acme")
    serving.publish(_rebuilt([gone], views=1), checkpoint_id="c", batch_id=1)

    serving.publish(Rebuilt([gone], MEASURES, []), checkpoint_id="c", batch_id=2)

    assert _query(dsn, "SELECT count(*) FROM serving.rollups_hourly") == [(0,)]
    assert _query(dsn, "SELECT count(*) FROM serving.histograms_hourly") == [(0,)]


def test_a_publish_that_fails_leaves_everything_as_it_was(serving: Serving, dsn: str) -> None:
    one = Slice(491_000, "acme")
    serving.publish(_rebuilt([one], views=1), checkpoint_id="c", batch_id=1)
    serving.mark_dirty({one})
    (group,) = _rebuilt([one], views=2).groups
    wrong = Rebuilt([one], MEASURES, [group, replace(group, grain="no_grain")])

    with pytest.raises(psycopg.errors.CheckViolation):
        serving.publish(wrong, checkpoint_id="c", batch_id=2)

    assert _query(dsn, "SELECT views FROM serving.rollups_hourly") == [(1,)]
    assert serving.dirty(10) == [one]


def test_a_driver_that_another_has_replaced_can_neither_mark_nor_publish(serving: Serving, dsn: str) -> None:
    newer = _serving(dsn)
    newer.open()
    newer.close()

    with pytest.raises(Fenced):
        serving.mark_dirty({Slice(1, "acme")})
    with pytest.raises(Fenced):
        serving.publish(_rebuilt([Slice(1, "acme")], views=1), checkpoint_id="c", batch_id=1)
    assert _query(dsn, "SELECT count(*) FROM serving.rollups_hourly") == [(0,)]


def test_a_connection_that_broke_is_replaced(serving: Serving, dsn: str) -> None:
    serving.mark_dirty({Slice(1, "acme")})
    _query(
        dsn,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'playhead-finalizer' AND datname = current_database()",
    )

    serving.mark_dirty({Slice(2, "acme")})

    assert serving.dirty(10) == [Slice(2, "acme"), Slice(1, "acme")]


def test_marks_of_minutes_add_up_and_a_whole_slice_stays_whole(serving: Serving, dsn: str) -> None:
    one, two, three = (Slice(hour, "acme") for hour in (491_000, 491_001, 491_002))
    serving.mark_minutes({one: {3, 5}, two: {1}})
    serving.mark_minutes({one: {5, 59}})
    serving.mark_dirty([two, three])
    serving.mark_minutes({two: {1}, three: {2}})
    marks = "SELECT hour, minutes FROM finalizer.dirty_slices ORDER BY hour"
    assert _query(dsn, marks) == [(one.hour, [3, 5, 59]), (two.hour, None), (three.hour, None)]
    asked = partial(serving.dirty_minutes, [one, two, three])
    # What was never published is counted whole.
    assert asked([""], views_min=0) == {}

    # Its minutes are in the warehouse only for the sets of dimensions that it was published with.
    serving.publish(_rebuilt([one], views=7), checkpoint_id="c", batch_id=1)
    serving.mark_minutes({one: {4}})
    published = [row[0] for row in _query(dsn, "SELECT DISTINCT dimensions FROM serving.rollups ORDER BY 1")]
    assert asked(published, views_min=7) == {one: [4]}
    assert asked(published, views_min=8) == {}
    assert asked([*published, "country"], views_min=0) == {}
    # Nor if members were added up.
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE serving.rollups SET dimensions = 'cdn', members = '{(other)}' WHERE grain = 'hour'")
    assert asked(["cdn"], views_min=0) == {}


def test_forgotten_viewers_are_listed_once_with_the_newest_time(serving: Serving) -> None:
    serving.refuse([])
    serving.refuse([Forgotten("acme", b"x" * 32, 5), Forgotten("other", b"x" * 32, 6)])
    serving.refuse([Forgotten("acme", b"x" * 32, 4)])
    serving.forget_views("acme", ["v"], [], at_ms=9)
    assert sorted(serving.forgotten()) == sorted(
        [Forgotten("acme", b"x" * 32, 5), Forgotten("other", b"x" * 32, 6), Forgotten("acme", hash_of("v"), 9)]
    )


def test_a_clock_that_is_ahead_or_behind_makes_nothing_older(
    serving: Serving, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_ms = 400 * 86_400_000
    now_ms = driver.clock_ms()
    monkeypatch.setattr(driver, "clock_ms", lambda: now_ms + ahead_ms)
    with capture_logs() as logs:
        assert abs(driver.earlier_ms(serving) - now_ms) < ahead_ms // 2
        monkeypatch.setattr(driver, "clock_ms", lambda: now_ms - ahead_ms)
        assert driver.earlier_ms(serving) == now_ms - ahead_ms
        monkeypatch.setattr(driver, "clock_ms", serving.clock_ms)
        driver.earlier_ms(serving)
    assert [line["event"] for line in logs] == ["clocks_differ", "clocks_differ"]


def test_a_reprocess_and_a_deletion_of_rows_exclude_each_other(dsn: str) -> None:
    with (
        reprocess_lock.hold(dsn),
        pytest.raises(ReprocessLocked, match="reprocess runs"),
        reprocess_lock.hold(dsn),
    ):
        pass
    # It is free again; and who lost it hears so.
    with pytest.raises(ReprocessLocked, match="do it again"), reprocess_lock.hold(dsn):
        _query(dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ 'reprocess'")


def test_a_database_that_stays_away_is_given_up_and_its_password_not_logged() -> None:
    serving = _serving("postgresql://user:hunter2@127.0.0.1:1/none", away_seconds_max=0.3)

    with pytest.raises(ServingAway) as caught:
        serving.open()

    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


def test_what_an_older_version_published_is_published_again_by_this_one(dsn: str, tmp_path: Path) -> None:
    for path in MIGRATIONS_DIR.iterdir():
        if path.is_file() and path.stem < "r0004":
            shutil.copy(path, tmp_path)
    assert migrations.migrate(dsn, "finalizer", tmp_path) == ["0001", "0002", "0003"]
    columns = ", ".join(MEASURES)
    ones = ", ".join("1" for _ in MEASURES)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            f"INSERT INTO serving.rollups_hourly (hour, customer_id, {columns}) VALUES (to_timestamp(3600), 'acme', {ones})"
        )
    assert migrate(dsn) == ["0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012"]
    assert _query(dsn, "SELECT hour, customer_id FROM finalizer.dirty_slices") == [(1, "acme")]
    assert _query(dsn, "SELECT count(*) FROM serving.rollups_hourly") == [(0,)]


def test_hours_that_were_published_before_blocks_were_are_in_them(serving: Serving, dsn: str, tmp_path: Path) -> None:
    slices = [Slice(hour, "acme") for hour in range(491_000, 491_005)]
    serving.publish(_rebuilt(slices, views=3), checkpoint_id="c", batch_id=1)
    blocks = _query(dsn, "SELECT * FROM serving.blocks ORDER BY level, block")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "DROP TABLE serving.blocks; DROP FUNCTION finalizer.refresh_blocks; DROP INDEX serving.rollups_gathered"
        )
        connection.execute("UPDATE public.finalizer_revision SET version_num = '0004'")

    for path in MIGRATIONS_DIR.iterdir():
        if path.is_file() and path.stem < "r0007":
            shutil.copy(path, tmp_path)
    assert migrations.migrate(dsn, "finalizer", tmp_path) == ["0005", "0006"]

    assert _query(dsn, "SELECT * FROM serving.blocks ORDER BY level, block") == blocks
    assert _query(dsn, "SELECT sum(views)::int, max(level) FROM serving.blocks WHERE level IN (0, 13)") == [(30, 13)]


def test_a_view_is_looked_up_as_its_newest_revision_and_none_that_was_taken_back_returns(
    serving: Serving, dsn: str
) -> None:
    def bring(*views: View) -> None:
        serving.bring_recent(_rows(*views))

    serving.keep_views(0)
    one = a_view("one", revision=2, video_title="\0")
    bring(one, a_view("two"))
    bring(a_view("one", watch_ms=7), a_view("two", revision=2, deleted=True))
    bring(a_view("two"))

    assert _query(dsn, "SELECT view_id, revision, deleted, watch_ms FROM serving.views ORDER BY 1") == [
        ("one", 2, False, 0),
        ("two", 2, True, 0),
    ]
    ((document,),) = _query(dsn, "SELECT document FROM serving.views WHERE view_id = 'one'")
    assert VIEW.decode(str(document).encode()) == one
    # A view id on two days is two views, as in the warehouse.
    bring(a_view("one", revision=1, day=one.day + 1))
    assert _query(dsn, "SELECT sum(views)::int FROM serving.sums WHERE grain = 'hour'") == [(2,)]
    serving.expire(rollups_before_ms=None, views_since_hour=hour_of(one) + 1)
    assert _query(dsn, "SELECT count(*) FROM serving.views") == [(0,)]


def test_views_are_restated_by_day_also_to_older_ones_and_those_without_a_row_leave(serving: Serving, dsn: str) -> None:
    serving.keep_views(0)
    one, other_day = a_view("one", revision=3), a_view("one", revision=4, day=a_view("one").day + 1)
    serving.bring_recent(_rows(one, other_day, a_view("gone", revision=2)))

    older = _rows(a_view("one", revision=2))
    gone = [(*row[:-1], None) for row in _rows(a_view("gone"))]
    serving.restate_recent([*older, *gone])

    assert _query(dsn, "SELECT view_id, day, revision FROM serving.views ORDER BY day") == [
        ("one", one.day, 2),
        ("one", other_day.day, 4),
    ]
    assert _query(dsn, "SELECT sum(views)::int FROM serving.sums WHERE grain = 'hour'") == [(2,)]


def group(one: View, watch_ms: int) -> Group:
    """What the finalizer counts of an hour with this view alone, by client; of the watch time it says what is given."""
    figures = dict.fromkeys(MEASURES, 0) | {"views": 1, "watch_ms": watch_ms, "beacons": one.beacon_count}
    figures["started"] = int(one.startup_ms is not None)
    startups = [] if one.startup_ms is None else [bucket_of(one.startup_ms)]
    histograms = [startups, [1] * len(startups), [bucket_of(0)], [1]]
    start_ms = hour_of(one) * 3_600_000
    return Group("hour", start_ms, one.customer_id, "source", ["mux"], [*figures.values()], b"", histograms)


def test_slices_whose_views_add_up_to_their_rollups_are_read_from_these_and_no_others(
    serving: Serving, dsn: str
) -> None:
    serving.keep_views(0)
    views = [a_view("here", watch_ms=10, startup_ms=5), a_view("there", customer="other", watch_ms=20)]
    slices = [Slice(hour_of(view), view.customer_id) for view in views]
    hot = "SELECT customer_id FROM serving.hot_slices ORDER BY 1"

    serving.bring_recent(_rows(*views))
    serving.publish(Rebuilt(slices, MEASURES, []), checkpoint_id="c", batch_id=1)
    assert _query(dsn, hot) == [("acme",), ("other",)]

    # The finalizer has counted one of them right.
    groups = [group(views[0], 10), group(views[1], 19)]
    serving.publish(Rebuilt(slices, MEASURES, groups), checkpoint_id="c", batch_id=2)
    assert _query(dsn, hot) == [("other",)]
    serving.bring_recent(_rows(a_view("here", revision=2, watch_ms=11)))
    assert _query(dsn, hot) == [("acme",), ("other",)]


def test_hours_differ_only_where_the_finalizer_has_published_since_the_rows_came(serving: Serving, dsn: str) -> None:
    serving.keep_views(0)
    one = a_view("one", watch_ms=10)
    here, elsewhere = Slice(hour_of(one), "acme"), Slice(hour_of(one) + 1, "acme")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE serving.coverage SET is_whole = true")
        serving.publish(Rebuilt([elsewhere], MEASURES, []), checkpoint_id="c", batch_id=1)
        serving.bring_recent(_rows(one))
        # It stands still since, or is about to count the hour.
        assert compare(connection, 0.0) == []
        serving.mark_dirty([here])
        serving.publish(Rebuilt([elsewhere], MEASURES, []), checkpoint_id="c", batch_id=2)
        assert compare(connection, 0.0) == []
        serving.publish(Rebuilt([here], MEASURES, []), checkpoint_id="c", batch_id=3)
        assert compare(connection, 0.0) == [(hour_of(one), "acme")]
        assert compare(connection, 600.0) == []


def test_hours_do_not_differ_whose_rollups_are_kept_for_less_long_than_their_rows(serving: Serving, dsn: str) -> None:
    serving.keep_views(0)
    views = [a_view("here", watch_ms=10), a_view("there", customer="other", watch_ms=20)]
    slices = [Slice(hour_of(view), view.customer_id) for view in views]
    over_ms = (hour_of(views[0]) + 1) * 3_600_000
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE serving.coverage SET is_whole = true")
        serving.bring_recent(_rows(*views))
        groups = [group(views[0], 10), group(views[1], 20)]
        serving.publish(Rebuilt(slices, MEASURES, groups), checkpoint_id="c", batch_id=1)
        serving.expire_customer("acme", views_before_day=0, rollups_before_ms=over_ms)
        assert compare(connection, 0.0) == []
        serving.expire(rollups_before_ms=over_ms, views_since_hour=0)
        assert compare(connection, 0.0) == []
        assert connection.execute("SELECT count(*) FROM serving.rollups").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM serving.views").fetchone() == (2,)


def test_hours_whose_rows_came_after_the_finalizer_published_them_are_read_from_rollups_once_they_were_compared(
    serving: Serving, dsn: str
) -> None:
    serving.keep_views(0)
    right, wrong = a_view("right", watch_ms=10), a_view("wrong", customer="other", watch_ms=20)
    hot = "SELECT customer_id FROM serving.hot_slices ORDER BY 1"
    slices = [Slice(hour_of(view), view.customer_id) for view in (right, wrong)]
    serving.publish(Rebuilt(slices, MEASURES, [group(right, 10), group(wrong, 19)]), checkpoint_id="c", batch_id=1)
    serving.bring_recent(_rows(right, wrong))
    with psycopg.connect(dsn, autocommit=True) as connection:
        compare(connection, 0.0)
        assert _query(dsn, hot) == [("acme",), ("other",)], "not all rows are there yet"
        connection.execute("UPDATE serving.coverage SET is_whole = true")
        compare(connection, 600.0)
        assert _query(dsn, hot) == [("acme",), ("other",)], "others may come"
        compare(connection, 0.0)
        assert _query(dsn, hot) == [("other",)]


SLOW_SECONDS = 0.4


@pytest.fixture
def slow(dsn: str) -> Iterator[Serving]:
    """Every insert of rollups takes longer than a statement may take at first."""
    opened = Serving(dsn, away_seconds_max=0.1, stop=threading.Event(), statement_ms=50)
    opened.open()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN PERFORM pg_sleep({SLOW_SECONDS}); RETURN NULL; END $$"
        )
        connection.execute("CREATE TRIGGER slow AFTER INSERT ON serving.rollups EXECUTE FUNCTION slow()")
    yield opened
    opened.close()


def test_a_statement_that_takes_too_long_gets_more_time_since_the_database_is_not_away(slow: Serving, dsn: str) -> None:
    one = Slice(491_000, "acme")
    slow.mark_dirty({one})

    slow.publish(_rebuilt([one], views=3), checkpoint_id="c", batch_id=1)

    assert slow.dirty(10) == []
    assert _query(dsn, "SELECT views FROM serving.rollups_hourly") == [(3,)]


def test_a_statement_that_never_ends_is_given_up_with_what_it_was_cancelled_for(dsn: str) -> None:
    serving = Serving(dsn, away_seconds_max=20, stop=threading.Event(), statement_ms=1_000, statement_ms_max=2_000)
    serving.open()
    with psycopg.connect(dsn) as connection:
        connection.execute("LOCK TABLE serving.rollups")
        with pytest.raises(StatementTooSlow, match="cancelled after 2000 ms: canceling statement due to statement"):
            serving.publish(_rebuilt([Slice(491_000, "acme")], views=3), checkpoint_id="c", batch_id=1)
    serving.close()


def _serving(dsn: str, away_seconds_max: float = 20.0) -> Serving:
    return Serving(dsn, away_seconds_max=away_seconds_max, stop=threading.Event())


def _rebuilt(slices: list[Slice], *, views: int) -> Rebuilt:
    """The slices with `views` views each and 1 of all else."""
    measures = [views, *[1] * (len(MEASURES) - 1)]
    return Rebuilt(slices, MEASURES, [total(one, measures, {300: views}) for one in slices])


def _rows(*views: View) -> list[tuple[Any, ...]]:
    return [row for row in map(row_of, map(VIEW.encode, views)) if not isinstance(row, str)]


def _query(dsn: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchall()
