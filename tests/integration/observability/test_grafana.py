"""The Grafana dashboard of what viewers experience: its SQL on a real Postgres, as its own user, beside the truth of the views."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from deploy.local.postgres import Postgres
from deploy.observability import dashboards
from deploy.observability.experience import CUSTOMERS
from shared.schemas.view import View
from tests.documents import run_by
from tests.integration.observability.grafana import filled
from tests.integration.page.parts.page_views import month
from tests.integration.query.querying import Installation, installed
from tests.unit.query.parts.recounting import FIGURES, HOUR_MS, counts_at

pytestmark = pytest.mark.integration

#: Sundays come and go, the views are the same: 2026-03-27 12:34 UTC.
NOW_MS = 1_774_614_840_000
#: Before this hour rollups answer, from it on the sums of hot rows.
HOT_FROM = NOW_MS // HOUR_MS - 12
BEGIN_HOUR = NOW_MS // HOUR_MS - 24
#: What the finalizer would have published of hours that are not hot.
SETTLED = """
    INSERT INTO serving.rollups (
        grain, start, customer_id, dimensions, members, views, started, startup_failures, playback_failures, exits_before_start,
        views_dropped, watch_ms, playing_ms, rebuffer_count, rebuffer_ms, seek_count, seek_ms, bitrate_integral, bitrate_time_ms,
        beacons, duplicates, uniques, startup_ms_buckets, startup_ms_counts, rebuffer_ms_buckets, rebuffer_ms_counts
    )
    SELECT 'hour', to_timestamp(v.hour * 3600), v.customer_id, {dimension}, {members}, count(*), 0,
        count(*) FILTER (WHERE startup_failed), count(*) FILTER (WHERE playback_failed), count(*) FILTER (WHERE ebvs),
        0, sum(watch_ms), 0, 0, sum(rebuffer_ms), 0, 0, sum(bitrate_integral), sum(bitrate_time_ms),
        0, 0, '', array_agg(serving.bucket(startup_ms)) FILTER (WHERE startup_ms IS NOT NULL),
        array_agg(1) FILTER (WHERE startup_ms IS NOT NULL), '{{}}', '{{}}'
    FROM serving.views AS v GROUP BY v.hour, v.customer_id, {group}
    HAVING count(startup_ms) > 0
"""


@pytest.fixture(scope="module")
def views() -> list[View]:
    return [view for view in month(NOW_MS) if BEGIN_HOUR * HOUR_MS <= counts_at(view) < NOW_MS]


@pytest.fixture(scope="module")
def database(postgres: Postgres, views: list[View], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Half of the hours hot, half settled; a rollup of a hot hour is there too, and must not count."""
    with installed(postgres, tmp_path_factory.mktemp("grafana")) as made:
        started = [view for view in views if view.startup_ms is not None]
        others = [view for view in views if view.startup_ms is None and counts_at(view) >= HOT_FROM * HOUR_MS]
        views[:] = [*started, *others]
        made.in_postgres(views)
        user = f"grafana_{uuid4().hex}"
        with psycopg.connect(made.dsn, autocommit=True) as connection:
            connection.execute(SETTLED.format(dimension="''", members="'{}'", group="()").encode())
            connection.execute(SETTLED.format(dimension="'cdn'", members="ARRAY[v.cdn]", group="v.cdn").encode())
            connection.execute("DELETE FROM serving.hot_slices WHERE hour < %s", (HOT_FROM,))
            connection.execute("DELETE FROM serving.sums WHERE grain = 'hour' AND start < %s", (HOT_FROM,))
            connection.execute(
                "INSERT INTO serving.live_minutes VALUES ('acme', '', %s, %s)",
                (NOW_MS // 60_000 - 5, json.dumps({"steps": 12, "values": {"": {"viewers_now": 1_200}}})),
            )
            connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(user)))
            # The user's own name is the whole server's, and another test makes it.
            (rights,) = run_by(__file__, "sql")
            connection.execute(rights.text.replace("TO grafana", f"TO {user}").encode())
        made.folder.joinpath("user").write_text(user)
        yield made
        with psycopg.connect(made.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(user)))


@pytest.fixture
def ask(database: Installation) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Asks a panel as Grafana does: its macros and variables are replaced in the text."""
    panels = {
        panel["title"]: panel["targets"][0]["rawSql"]
        for panel in json.loads(dashboards.to_json(dashboards.build_experience()))["panels"]
    }
    begin, end = (datetime.fromtimestamp(at, UTC).isoformat() for at in (BEGIN_HOUR * 3_600, NOW_MS / 1_000))
    with psycopg.connect(database.dsn, autocommit=True, row_factory=psycopg.rows.dict_row) as connection:
        user = (database.folder / "user").read_text()
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(user)))

        def asked(title: str, *customers: str) -> list[dict[str, Any]]:
            return connection.execute(filled(panels[title], begin, end, customers).encode()).fetchall()

        yield asked


def of(views: list[View], customer: str, at: datetime) -> list[View]:
    hour = int(at.timestamp()) // 3_600
    return [view for view in views if view.customer_id == customer and counts_at(view) // HOUR_MS == hour]


@pytest.mark.parametrize(
    ("title", "metric"),
    [
        ("Views finished", "views"),
        ("Rebuffer percentage", "rebuffer_fraction"),
        ("Playback failures", "playback_failure_fraction"),
        ("Exits before start", "exit_before_start_fraction"),
        ("Average bitrate", "bitrate_bps"),
    ],
)
def test_a_figure_of_each_hour_is_that_of_its_views(
    ask: Callable[..., list[dict[str, Any]]], views: list[View], title: str, metric: str
) -> None:
    found = ask(title, "acme", "globex")
    assert sum(FIGURES["views"](of(views, row["metric"], row["time"])) for row in found) == len(views)
    assert min(row["time"].timestamp() for row in found) < HOT_FROM * 3_600, "none is of rollups"
    for row in found:
        assert row["value"] == pytest.approx(FIGURES[metric](of(views, row["metric"], row["time"]))), row


def test_start_up_times_are_those_of_the_customers_that_are_chosen(
    ask: Callable[..., list[dict[str, Any]]], views: list[View]
) -> None:
    found = ask("Start-up time", "acme")
    assert len(found) >= 20
    for row in found:
        for column, metric in (("median", "startup_ms_p50"), ("p95", "startup_ms_p95")):
            truth = FIGURES[metric](of(views, "acme", row["time"]))
            assert row[column] == pytest.approx(truth, rel=0.0101), row


@pytest.mark.parametrize(("title", "column", "field"), [
    ("By CDN, over the range", "cdn", "cdn"), ("By customer, over the range", "customer", "customer_id"),
])  # fmt: skip
def test_a_table_over_the_range_has_each_view_once(
    ask: Callable[..., list[dict[str, Any]]], views: list[View], title: str, column: str, field: str
) -> None:
    found = {row[column]: row for row in ask(title, "acme", "globex")}
    assert found.keys() == {getattr(view, field) for view in views}
    for value, row in found.items():
        group = [view for view in views if getattr(view, field) == value]
        assert row["views"] == len(group)
        for metric in ("rebuffer_fraction", "playback_failure_fraction", "exit_before_start_fraction"):
            assert row[metric] == pytest.approx(FIGURES[metric](group))
    assert sum(row["rebuffer_fraction"] > 0 for row in found.values()) >= 2


def test_viewers_of_a_minute_and_the_choice_of_customers(
    ask: Callable[..., list[dict[str, Any]]], database: Installation
) -> None:
    assert [(row["metric"], row["value"]) for row in ask("Viewers", "acme", "globex")] == [("acme", 100)]
    assert ask("Viewers", "globex") == []
    with psycopg.connect(database.dsn) as connection:
        assert connection.execute(CUSTOMERS.encode()).fetchall() == [("acme",), ("globex",)]


def test_grafanas_user_sees_no_viewer_and_no_account(database: Installation) -> None:
    user = (database.folder / "user").read_text()
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(user)))
        for statement in (
            "SELECT viewer_id FROM serving.views",
            "SELECT document FROM serving.views",
            "SELECT 1 FROM finalizer.fence",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
