"""Questions of any kind, and how an answer is compared with a recount."""

import math
import random
from typing import Any

import msgspec

from services.query.core.answer import Answer, Breakdown, Distribution, Figure, Overall, Point, Timeseries
from services.query.core.customers import Customers
from services.query.core.filters import Filter
from services.query.core.question import (
    AnyAsked,
    Asked,
    AskedBreakdown,
    AskedDistribution,
    AskedSeries,
    Question,
    understood,
)
from shared.schemas.view import View
from tests.unit.query.parts import recounting
from tests.unit.query.parts.recounting import DAY_MS, FIGURES, HOUR_MS, T0_MS

DIMENSIONS = (
    "country",
    "cdn",
    "source",
    "customer",
    "player_version",
    "asn",
    "is_bot",
    "exit_before_start",
    "viewer",
    "custom.plan",
    "custom.a 'b\"",
)
VALUES = (
    "DE",
    "akamai",
    "x" * 100,
    "o'; DROP TABLE views; --",
    "",
    "1.2",
    "3320",
    "true",
    "gold",
    "viewer",
    None,
    "none",
)
#: Parts of texts that no view has, or that are code in a pattern.
PARTS = ("%", "_", "'; drop", "x" * 101, "nowhere")
#: Numbers of views: some always known, some not, fractions too, and one by which files are divided.
NUMBERS = ("startup_ms", "watch_ms", "rebuffer_count", "score_view", "asn", "dropped_frames", "view_end_ms", "day")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


def asked(chance: random.Random) -> AnyAsked:
    """Any question about the views of `recounting.a_view`."""
    given: dict[str, Any] = {
        "customer": chance.choice(["*", "acme", "other", "acme,other", "nobody"]),
        "from_": str(_moment(chance, T0_MS - DAY_MS)),
        "to": str(_moment(chance, T0_MS + 3 * DAY_MS)),
        "tz": chance.choice(ZONES),
        "filter": chance.choice(["", msgspec.json.encode(a_filter(chance, 3)).decode()]),
    }
    kind = chance.randrange(4)
    if kind == 0:
        return AskedDistribution(
            of=chance.choice(["startup_ms", "rebuffer_ms", "avg_bitrate_bps", "score_view", "score_smooth"]), **given
        )
    given["metrics"] = ",".join(chance.sample(list(FIGURES), chance.randrange(1, 6)))
    if kind == 1:
        return Asked(**given)
    if kind == 2:
        bucket = chance.choice(["hour", "day", "week", "month", "15minutes", ""])
        by = chance.choice(["", *DIMENSIONS])
        return AskedSeries(bucket=bucket, by=by, limit=chance.choice([1, 3, 10]), **given)
    return AskedBreakdown(
        by=",".join(chance.sample(DIMENSIONS, chance.choice([1, 2]))),
        limit=chance.choice([1, 2, 10]),
        order_by=chance.choice(
            ["views", "rebuffer_fraction", "startup_ms_p95", "viewers", "playback_failure_fraction"]
        ),
        order=chance.choice(["ascending", "descending"]),
        views_min=chance.choice([0, 3]),
        **given,
    )


def _moment(chance: random.Random, around_ms: int) -> int:
    at_ms = around_ms + chance.randrange(2 * DAY_MS)
    return at_ms // HOUR_MS * HOUR_MS if chance.random() < 0.5 else at_ms


def a_filter(chance: random.Random, depth: int) -> Filter:
    """Any filter."""
    kind = chance.randrange(4) if depth else 3
    if kind == 3 and chance.random() < 0.3:
        return chance.choice([_a_part, _a_bound])(chance)
    if kind == 0:
        return Filter(all_of=tuple(a_filter(chance, depth - 1) for _ in range(chance.randrange(1, 3))))
    if kind == 1:
        return Filter(any_of=tuple(a_filter(chance, depth - 1) for _ in range(chance.randrange(1, 3))))
    if kind == 2:
        return Filter(none_of=a_filter(chance, depth - 1))
    return Filter(dimension=chance.choice(DIMENSIONS), values=tuple(chance.sample(VALUES, chance.randrange(1, 4))))


def _a_part(chance: random.Random) -> Filter:
    dimension = chance.choice(DIMENSIONS)
    value = recounting.value_of(_any_view(chance), dimension)
    if not value:
        return Filter(dimension=dimension, contains=chance.choice(PARTS))
    first = chance.randrange(len(value))
    return Filter(dimension=dimension, contains=value[first : first + chance.randrange(1, 5)].swapcase())


def _a_bound(chance: random.Random) -> Filter:
    number = chance.choice(NUMBERS)
    # A value as views have it: bounds that are met exactly are among them.
    found = getattr(_any_view(chance), number) or chance.choice([0, 1, 50, 0.5])
    least, below = chance.choice([(found, None), (None, found), (found, 2 * found + 1), (found, found)])
    return Filter(number=number, at_least=least, below=below)


def _any_view(chance: random.Random) -> View:
    return recounting.a_view(chance, f"view-{chance.randrange(300)}")


def question(one: AnyAsked) -> Question:
    """The question, of somebody who may see all customers."""
    return understood(one, lambda names: Customers(tuple(names) or None), T0_MS + 4 * DAY_MS)


def expect(one: Question, answer: Answer, views: list[View]) -> None:
    """Holds an answer against a recount."""
    wanted = recounting.wanted(one, views)
    if isinstance(answer, Overall):
        assert answer.n == len(wanted)
        _same(answer.metrics, recounting.figures(one, wanted))
    elif isinstance(answer, Timeseries):
        _expect_series(one, answer, wanted)
    elif isinstance(answer, Breakdown):
        expected = recounting.groups(one, wanted)
        found = [(group.kind, tuple(group.key), group.n) for group in answer.groups]
        assert found == [group[:3] for group in expected]
        for group, (*_, figures) in zip(answer.groups, expected, strict=True):
            _same(group.metrics, figures)
    else:
        _expect_distribution(one, answer, wanted)


def _expect_series(one: Question, answer: Timeseries, wanted: list[View]) -> None:
    if not one.by:
        _expect_points(one, answer.points, wanted)
        return
    expected = recounting.groups(one, wanted)
    assert [(line.kind, tuple(line.key), line.n) for line in answer.groups or ()] == [group[:3] for group in expected]
    listed = [line.key[0] for line in answer.groups or () if line.kind != "other"]
    for line in answer.groups or ():
        values = {(value := recounting.value_of(view, one.by[0].name)): value in listed for view in wanted}
        own = [
            view
            for view in wanted
            for value in (recounting.value_of(view, one.by[0].name),)
            if (not values[value] if line.kind == "other" else value == line.key[0])
        ]
        _expect_points(one, line.points or [], own)


def _expect_points(one: Question, found: list[Point], wanted: list[View]) -> None:
    by_start = recounting.points(one, wanted)
    assert {point.from_ms for point in found if point.n} == set(by_start)
    for point in found:
        if point.n:
            n, figures = by_start[point.from_ms]
            assert point.n == n
            _same(point.metrics, figures)


def _expect_distribution(one: Question, answer: Distribution, wanted: list[View]) -> None:
    counts, unknown = recounting.distributed(one, wanted)
    assert (answer.n, answer.unknown) == (counts.total(), unknown)
    is_score = (one.field or "").startswith("score_")
    for found in answer.bins:
        if is_score:
            assert (found.to_value - found.from_value, found.n) == (5, counts[round(found.from_value / 5)])
        elif found.to_value == 0:
            assert found.n == counts[None]
        else:
            low, high = (round(math.log(bound) / math.log(1.02)) for bound in (found.from_value, found.to_value))
            assert found.n == sum(counts[bucket] for bucket in range(low, high))
    assert sum(found.n for found in answer.bins) == answer.n
    # Of buckets, and within 1 % of the exact ones; of a score exact.
    values = recounting.known(wanted, one.field or "")
    for name, value in answer.quantiles.items():
        exact = recounting.ranked(values, int(name[1:]) / 100)
        assert (value is None) == (exact is None)
        assert value is None or abs(value - exact) <= (0 if is_score else 0.01) * exact + 1e-9, (name, value, exact)


def _same(found: dict[str, Figure], expected: dict[str, Any]) -> None:
    assert set(found) == set(expected)
    for name, figure in found.items():
        if expected[name] is None:
            assert figure.value is None, name
        else:
            assert figure.value is not None, name
            assert math.isclose(figure.value, expected[name], rel_tol=1e-9, abs_tol=1e-9), (
                name,
                figure,
                expected[name],
            )
