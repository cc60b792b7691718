"""Exports of figures: the columns and rows of each question, and what they are compared with."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from msgspec import structs

from services.query.core.resources.titles.titles import METRICS_OF_TITLES
from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.dashboard.door import METRICS_TOKEN
from tests.unit.query.parts.export_desk import WITHIN, desk, own, some_views
from tests.unit.query.parts.recounting import DAY_MS, FIGURES, T0_MS, counts_at


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("engine"), threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def views() -> list[View]:
    return some_views()


TIMES = ["from_ms", "from_at", "to_ms", "to_at"]


async def exported(engine: Engine, views: list[View], folder: Path, what: str, parameters: dict[str, str]) -> pa.Table:
    """The file of a question."""
    async with desk(engine, views, folder) as at:
        _, job = await at.ask("POST", "/v1/exports", METRICS_TOKEN, of=what, parameters=parameters)
        job = await at.done(job["id"], METRICS_TOKEN)
        _, data = await at.ask("GET", job["href"], METRICS_TOKEN)
    return pa_csv.read_csv(pa.BufferReader(data))


@pytest.mark.parametrize(
    "case",
    [
        ("overall", {}, ["views", "viewers", "viewers_n"]),
        ("breakdown", {"by": "cdn"}, ["kind", "cdn", "views", "viewers", "viewers_n"]),
        ("timeseries", {"bucket": "day"}, ["from_ms", "from_at", "to_ms", "to_at", "views", "viewers", "viewers_n"]),
        (
            "timeseries",
            {"bucket": "day", "by": "cdn"},
            ["kind", "value", "from_ms", "from_at", "to_ms", "to_at", "views", "viewers", "viewers_n"],
        ),
    ],
)
async def test_a_question_becomes_a_file_with_its_figures(
    engine: Engine, views: list[View], tmp_path: Path, case: tuple[str, dict[str, str], list[str]]
) -> None:
    of, parameters, columns = case
    table = await exported(engine, views, tmp_path, of, WITHIN | {"metrics": "viewers"} | parameters)
    assert table.column_names == columns
    assert sum(table["views"].to_pylist()) == len(own(views))


@pytest.mark.parametrize(
    "case",
    [
        ("overall", {}, []),
        ("timeseries", {"bucket": "day"}, TIMES),
        ("timeseries", {"bucket": "day", "by": "source"}, ["kind", "value", *TIMES]),
        ("breakdown", {"by": "source"}, ["kind", "source"]),
    ],
)
async def test_a_file_has_what_its_figures_are_compared_with_beside_them(
    engine: Engine, views: list[View], tmp_path: Path, case: tuple[str, dict[str, str], list[str]]
) -> None:
    of, parameters, key = case
    middle, length = T0_MS + 2 * DAY_MS, 3 * DAY_MS
    given = {"from": str(middle), "to": str(middle + length), "metrics": "started", "compare": "previous"}
    table = await exported(engine, views, tmp_path, of, given | parameters)
    own_columns = ["started", "started_n", "started_before", "started_before_n"]
    assert table.column_names == [*key, "views", *own_columns]
    for begin, suffix in ((middle, ""), (middle - length, "_before")):
        within = [view for view in own(views) if begin <= counts_at(view) < begin + length]
        started = FIGURES["started"](within)
        assert started > 0
        found = (f"started{suffix}", f"started{suffix}_n")
        assert [sum(value or 0 for value in table[name].to_pylist()) for name in found] == [started, len(within)]


async def test_a_breakdown_as_a_file_has_the_order_and_the_least_views_of_its_question(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    counts = Counter(view.source for view in own(views))
    (most, _), _, (fewest, few) = counts.most_common()
    given = WITHIN | {"by": "source", "order_by": "views", "order": "ascending", "views_min": str(few + 1)}
    table = await exported(engine, views, tmp_path, "breakdown", given)
    names = table["source"].to_pylist()
    assert (names[1:], fewest in names) == ([most, "(other)"], False)


async def test_a_distribution_becomes_a_file_with_its_bins(engine: Engine, views: list[View], tmp_path: Path) -> None:
    table = await exported(engine, views, tmp_path, "distribution", WITHIN | {"of": "startup_ms"})
    assert table.column_names == ["from_value", "to_value", "views"]
    bounds = [(row["from_value"], row["to_value"] or 1) for row in table.to_pylist()]
    values = [view.startup_ms for view in own(views) if view.startup_ms is not None]
    assert table["views"].to_pylist() == [sum(low <= one < high for one in values) for low, high in bounds]


async def test_a_distribution_beside_another_range_has_the_bins_of_both(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    middle, length = T0_MS + 2 * DAY_MS, 3 * DAY_MS
    given = {"from": str(middle), "to": str(middle + length), "of": "startup_ms", "compare": "previous"}
    table = await exported(engine, views, tmp_path, "distribution", given)
    assert table.column_names == ["from_value", "to_value", "views", "views_before"]
    bounds = [(row["from_value"], row["to_value"] or 1) for row in table.to_pylist()]
    assert bounds == sorted(set(bounds))
    for begin, name in ((middle, "views"), (middle - length, "views_before")):
        values = [
            view.startup_ms
            for view in own(views)
            if view.startup_ms is not None and begin <= counts_at(view) < begin + length
        ]
        assert values
        assert table[name].to_pylist() == [sum(low <= one < high for one in values) for low, high in bounds]


@pytest.mark.thorough
async def test_codes_of_errors_become_a_file_as_they_are_listed(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    coded = [
        structs.replace(view, error_code=f"code {number % 4}" if number % 5 else None)
        for number, view in enumerate(views)
    ]
    given = WITHIN | {"since": str(T0_MS + DAY_MS), "order_by": "last_seen"}
    table = await exported(engine, coded, tmp_path, "errors", given)

    kept = [view for view in own(coded) if view.error_code is not None]
    times = {
        code: [counts_at(view) for view in kept if view.error_code == code] for code in {v.error_code for v in kept}
    }
    assert table["code"].to_pylist() == sorted(times, key=lambda code: -max(times[code]))
    for row in table.to_pylist():
        of_code = times[row["code"]]
        assert (row["views"], row["first_ms"], row["last_ms"]) == (len(of_code), min(of_code), max(of_code))
        assert row["share_n"] == len(own(coded))
        assert row["is_new"] == (min(of_code) >= T0_MS + DAY_MS)
    assert {"first_at", "last_at", "before", "after_n"} <= set(table.column_names)
    without = await exported(engine, coded, tmp_path, "errors", WITHIN)
    assert "is_new" not in without.column_names
    # Beside another range: the counts are of the range alone.
    from_ms, to_ms = T0_MS + 2 * DAY_MS, T0_MS + 4 * DAY_MS
    given = {"from": str(from_ms), "to": str(to_ms), "compare": "previous"}
    beside = await exported(engine, coded, tmp_path, "errors", given)
    counts = Counter(view.error_code for view in kept if from_ms <= counts_at(view) < to_ms)
    assert dict(zip(beside["code"].to_pylist(), beside["views"].to_pylist(), strict=True)) == counts


async def test_titles_become_a_file_as_they_are_listed_beside_another_range(
    engine: Engine, views: list[View], tmp_path: Path
) -> None:
    named = [
        structs.replace(view, video_id=f"video {number % 3}", video_title="=A") for number, view in enumerate(views)
    ]
    given = WITHIN | {"order_by": "views", "compare": "previous"}
    table = await exported(engine, named, tmp_path, "titles", given)

    counts = Counter(view.video_id for view in own(named))
    assert sorted(table["views"].to_pylist(), reverse=True) == table["views"].to_pylist()
    assert dict(zip(table["video_id"].to_pylist(), table["views"].to_pylist(), strict=True)) == counts
    assert set(table["title"].to_pylist()) == {"'=A"}
    assert {"series", "rebuffer_fraction", "rebuffer_fraction_n", "rebuffer_fraction_before"} <= set(table.column_names)


@pytest.mark.parametrize(
    ("of", "given", "columns"),
    [
        ("overall", {}, []),
        ("timeseries", {"bucket": "day"}, TIMES),
        ("timeseries", {"bucket": "day", "by": "cdn"}, ["kind", "value", *TIMES]),
        ("breakdown", {"by": "cdn"}, ["kind", "cdn"]),
        ("titles", {}, ["video_id", "title", "series"]),
    ],
)
async def test_a_file_without_views_has_the_columns_of_any_other(
    engine: Engine, tmp_path: Path, of: str, given: dict[str, str], columns: list[str]
) -> None:
    metrics = {} if of == "titles" else {"metrics": "viewers,rebuffer_fraction"}
    names = METRICS_OF_TITLES if of == "titles" else ("viewers", "rebuffer_fraction")
    figures = [f"{name}{suffix}{n}" for name in names for suffix in ("", "_before") for n in ("", "_n")]
    table = await exported(engine, [], tmp_path, of, WITHIN | metrics | given | {"compare": "previous"})
    assert table.column_names == [*columns, "views", *(name for name in figures if name != "views")]


@pytest.mark.parametrize("given", [{"since": str(T0_MS)}, {"compare": "previous"}])
async def test_a_file_of_no_error_has_the_columns_of_any_other(
    engine: Engine, views: list[View], tmp_path: Path, given: dict[str, str]
) -> None:
    coded = [structs.replace(view, error_code="4") for view in views]
    whole = await exported(engine, coded, tmp_path / "whole", "errors", WITHIN | given)
    assert "is_new" in whole.column_names
    none = await exported(engine, [], tmp_path / "none", "errors", WITHIN | given)
    assert (none.num_rows, none.column_names) == (0, whole.column_names)
