"""The command line says what it takes; retention says which rows are too old."""

from collections.abc import Callable

import pytest

from services.finalizer import commands
from services.finalizer.__main__ import main, parser
from services.finalizer.jobs.compare import Difference
from services.finalizer.jobs.maintenance import Retention
from services.finalizer.jobs.reprocess import day_of
from services.finalizer.warehouse import tables

DAY_MS = 86_400_000


def test_a_day_is_shown_in_utc() -> None:
    assert (day_of("1970-01-01"), day_of("2026-02-02")) == (0, 20_486)
    given = parser().parse_args(["reprocess", "--from", "2026-02-02", "--to", "2026-02-03", "--generation", "2"])
    assert (given.first, given.last, given.generation) == (20_486, 20_487, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ["reprocess", "--from", "yesterday", "--to", "2026-02-02", "--generation", "2"],
        ["reprocess", "--from", "2026-02-03", "--to", "2026-02-02", "--generation", "2"],
        ["swap", "--generation", "1"],
        ["forget", "--customer", "acme"],
        ["export", "--day", "2026-02-02", "--table", "secrets", "--to", "x"],
        [],
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments, {})
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_wrong_settings_end_it_before_anything_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stream"], {"FINALIZER_POSTGRES_DSN": "postgresql://u:hunter2@db"}) == 2
    printed = capsys.readouterr().err
    assert "FINALIZER_WAREHOUSE_DIR must be set" in printed
    assert "hunter2" not in printed


@pytest.fixture
def retention() -> Callable[[tables.Table], str | None]:
    days = {table.name: 0 for table in tables.ALL} | {"bronze": 30, "unparsed": 2, "rollups": 90}
    kept = Retention(days=days, minutes_days=7, recent_days=1)
    return lambda table: kept.condition(table, 100 * DAY_MS + 5)


def test_each_table_is_kept_as_long_as_configured(retention: Callable[[tables.Table], str | None]) -> None:
    assert retention(tables.BRONZE) == "day < 70"
    assert retention(tables.VIEWS) is None
    assert retention(tables.UNPARSED) == f"kafka_timestamp_ms < {98 * DAY_MS}"
    assert retention(tables.ROLLUPS) == "day < 10 OR (grain = 'minute' AND day < 93)"


def test_a_difference_is_reported_with_what_differs_most_first() -> None:
    difference = Difference((1, 2), {"views": (5, 6)}, 1, 4, 1, 0, 0, {"cdn": 1, "spi_good": 4})
    lines = list(difference.lines())
    assert "views: 1 same, 4 changed, 1 added, 0 not reprocessed" in lines
    assert lines.index("  spi_good differs in 4") < lines.index("  cdn differs in 1")
    assert commands.GENERATION_MIN == 2
