"""Answers: their shape as the API documents it, and how they are made of the rows of statements. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec

from services.query.core import distributions
from services.query.core.calendar import Range
from services.query.core.distributions import DISTRIBUTED
from services.query.core.metrics import METRICS, Unit
from services.query.core.question import Question
from services.query.core.sql.statements import OTHER_RANK, SKIPPED_RANK, UNKNOWN_RANK
from shared.schemas.live import OTHER, UNKNOWN

Row = Mapping[str, Any]
Number = int | float


class Figure(msgspec.Struct, frozen=True):
    """A metric's value; null without a base. `n` is the number of views on which it rests."""

    value: Number | None
    n: int


class Span(msgspec.Struct, frozen=True):
    """A range of time, ms since 1970: from the first to before the last."""

    from_ms: int
    to_ms: int


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where figures come from: sums of hours, hot rows (finished views of the last days), or the warehouse."""

    name: Literal["sums", "hot_rows", "warehouse"]
    #: Views read, where they were read one by one.
    views: int | None = None
    #: Of the warehouse: the version of table `views`, and how many files were read.
    version: int | None = None
    files: int | None = None


class About(msgspec.Struct, frozen=True):
    """What every answer says of itself."""

    range: Span
    customers: list[str] | None
    sources: list[Source]
    #: When the newest of these views was written, or was looked for.
    as_of_ms: int | None
    #: False where figures come from buckets, within 1 %: quantiles of a distribution.
    is_exact: bool
    #: False where hot rows were too many to be read: views of the last minutes may be missing.
    has_hot_rows: bool


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    """A bucket of a series, cut to the range. `is_partial`: the range has not all of it."""

    from_ms: int
    to_ms: int
    n: int
    metrics: dict[str, Figure]
    is_partial: bool = False


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group of views. `key` has its values, null where unknown; `labels` the same to be shown.

    `other` adds up all groups that are not listed.
    """

    kind: Literal["value", "unknown", "other"]
    key: list[str | None]
    labels: list[str]
    n: int
    metrics: dict[str, Figure]
    #: The same group in the range that it is compared with.
    compared: dict[str, Figure] | None = None
    #: Of `other`: how many groups it adds up.
    groups: int | None = None
    points: list[Point] | None = None


class Overall(msgspec.Struct, frozen=True, omit_defaults=True):
    """All views of the question as one group."""

    about: About
    n: int
    metrics: dict[str, Figure]
    compared: "Overall | None" = None


class Timeseries(msgspec.Struct, frozen=True, omit_defaults=True):
    """A point for each bucket; with `by`, `groups` has a line for each value.

    `compared` has as many points, each in the place of the one that it stands beside.
    """

    about: About
    bucket: str
    points: list[Point]
    groups: list[Group] | None = None
    compared: "Timeseries | None" = None


class Breakdown(msgspec.Struct, frozen=True, omit_defaults=True):
    """Groups by rank, then `(unknown)` of a single dimension, then `(other)`."""

    about: About
    by: list[str]
    n: int
    groups: list[Group]
    compared: About | None = None


class Bin(msgspec.Struct, frozen=True):
    """Views of which the value is from `from_value` to before `to_value`."""

    from_value: float
    to_value: float
    n: int


class Distribution(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a measured value is distributed over views. `quantiles` are within 1 %, those of a score exact."""

    about: About
    of: str
    unit: Unit
    n: int
    #: Views that have no value.
    unknown: int
    bins: list[Bin]
    quantiles: dict[str, float | None]
    #: The same of the range that it is compared with.
    compared: "Distribution | None" = None


Answer = Overall | Timeseries | Breakdown | Distribution


def composed(question: Question, rows: Sequence[Row], about: About) -> Answer:
    """The answer that the rows of `figures.answering` make."""
    if question.shape == "distribution":
        return _distribution(question, rows, about)
    if question.shape == "breakdown":
        groups = _groups(question, rows)
        return Breakdown(about, [one.name for one in question.by], sum(map(_views, rows)), groups)
    if question.shape == "timeseries":
        assert question.buckets is not None
        lines = None
        if question.by:
            lines = _lines(question, rows)
            rows = ()
        return Timeseries(about, question.buckets.bucket, _points(question, rows) if lines is None else [], lines)
    (row,) = rows
    return Overall(about, _views(row), _figures(question, row))


def beside(question: Question, answer: Answer) -> Question | None:
    """The question for what an answer is compared with, of the same groups; None where it is compared with nothing."""
    if question.compare is None:
        return None
    pinned = _pins(question, answer) if question.by else None
    buckets = question.buckets.of(question.compare) if question.buckets else None
    return replace(question, range=question.compare, compare=None, buckets=buckets, pinned=pinned)


def compared(question: Question, answer: Answer, other: Answer) -> Answer:
    """An answer with another one beside it: that of the question of `beside`. A group that had no view there has its zeros."""
    if isinstance(answer, Breakdown) and isinstance(other, Breakdown):
        nothing = _figures(question, _nothing(question))
        by_key = {_name(group): group.metrics for group in other.groups}
        groups = [msgspec.structs.replace(one, compared=by_key.get(_name(one), nothing)) for one in answer.groups]
        return msgspec.structs.replace(answer, groups=groups, compared=other.about)
    assert not isinstance(answer, Breakdown)
    if isinstance(answer, Timeseries) and isinstance(other, Timeseries):
        there = {_name(line) for line in other.groups or ()}
        new = [_without_views(question, line) for line in answer.groups or () if _name(line) not in there]
        other = msgspec.structs.replace(other, groups=[*other.groups, *new]) if other.groups is not None else other
    return msgspec.structs.replace(answer, compared=other)


def _name(group: Group) -> tuple[str | None, ...]:
    return group.kind, *group.key


def _without_views(question: Question, line: Group) -> Group:
    groups = None if line.groups is None else 0
    return msgspec.structs.replace(line, n=0, groups=groups, points=_points(question, ()))


def _pins(question: Question, answer: Answer) -> tuple[tuple[str | None, ...], ...]:
    """The keys of the groups that an answer lists; and the unknown value of one dimension, which is never of `(other)`."""
    groups = answer.groups if isinstance(answer, Breakdown | Timeseries) else None
    listed = [tuple(group.key) for group in groups or () if group.kind != "other"]
    return tuple(dict.fromkeys([*listed, (None,)] if len(question.by) == 1 else listed))


def size(answer: Answer) -> int:
    """About how many figures it has."""
    if isinstance(answer, Breakdown):
        return sum(len(group.metrics) for group in answer.groups)
    if isinstance(answer, Timeseries):
        lines = [answer.points, *(group.points or [] for group in answer.groups or [])]
        return sum(len(point.metrics) for points in lines for point in points)
    return len(answer.bins) if isinstance(answer, Distribution) else len(answer.metrics)


def span(within: Range) -> Span:
    """A range as answers have it."""
    return Span(within.from_ms, within.to_ms)


def _views(row: Row) -> int:
    return int(row["views"])


def _figures(question: Question, row: Row) -> dict[str, Figure]:
    return {metric.name: Figure(metric.value(row), int(row[metric.base_part.name])) for metric in question.metrics}


def _nothing(question: Question) -> Row:
    """The parts of no views at all."""
    return {part.name: 0 if part.is_additive else None for part in question.parts} | {
        name: 0 for name in ("viewers",) if METRICS[name] in question.metrics
    }


def _points(question: Question, rows: Iterable[Row]) -> list[Point]:
    assert question.buckets is not None
    by_key = {int(row["bucket"]): row for row in rows}
    nothing = _nothing(question)
    points = []
    for number, (key, within) in enumerate(zip(question.buckets.keys, question.buckets.ranges(), strict=True)):
        if key is None:
            # No time at all: a count of it is not 0 either.
            figures = {metric.name: Figure(None, 0) for metric in question.metrics}
            points.append(Point(within.from_ms, within.to_ms, 0, figures))
            continue
        row = by_key.get(key, nothing)
        is_partial = question.buckets.is_partial(number)
        points.append(Point(within.from_ms, within.to_ms, _views(row), _figures(question, row), is_partial))
    return points


def _lines(question: Question, rows: Sequence[Row]) -> list[Group]:
    by_rank: dict[int, list[Row]] = {}
    for row in rows:
        by_rank.setdefault(int(row["rank"]), []).append(row)
    return [
        msgspec.structs.replace(
            _group(question, of_rank[0]),
            n=sum(map(_views, of_rank)),
            metrics={},
            groups=None,
            points=_points(question, of_rank),
        )
        for _, of_rank in sorted(by_rank.items(), key=lambda item: _place(item[0]))
    ]


def _groups(question: Question, rows: Sequence[Row]) -> list[Group]:
    listed = [row for row in rows if row["rank"] != SKIPPED_RANK]
    return [_group(question, row) for row in sorted(listed, key=lambda row: _place(int(row["rank"])))]


def _place(rank: int) -> tuple[int, int]:
    """Listed groups first, then what is unknown, then all others."""
    return {UNKNOWN_RANK: 1, OTHER_RANK: 2}.get(rank, 0), rank


def _group(question: Question, row: Row) -> Group:
    rank = int(row["rank"])
    key = [row[f"d{number}"] for number in range(len(question.by))]
    kind: Literal["value", "unknown", "other"] = "value"
    if rank == OTHER_RANK:
        kind, labels = "other", [OTHER] * len(key)
    else:
        kind = "unknown" if all(value is None for value in key) else "value"
        labels = [UNKNOWN if value is None else value for value in key]
    groups = int(row["groups"]) if kind == "other" else None
    return Group(kind, key, labels, _views(row), _figures(question, row), groups=groups)


def _distribution(question: Question, rows: Sequence[Row], about: About) -> Distribution:
    assert question.field is not None
    counts = {int(row["bucket"]): int(row["count"]) for row in rows if row["bucket"] is not None}
    unknown = sum(int(row["count"]) for row in rows if row["bucket"] is None)
    field = question.field
    listed = [Bin(*one) for one in distributions.bins(field, counts)]
    quantiles = distributions.quantiles(field, counts)
    return Distribution(about, field, DISTRIBUTED[field], sum(counts.values()), unknown, listed, quantiles)
