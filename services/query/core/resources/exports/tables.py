"""Answers as columns and rows of a file. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from services.query.core.answer import Answer, Breakdown, Distribution, Figure, Group, Overall, Point, Timeseries
from services.query.core.question import Question
from services.query.core.resources.errors.errors import ErrorList
from services.query.core.resources.titles.titles import TitleList


@dataclass(frozen=True)
class _Row:
    """A row of figures: its place and number of views, and its figures; beside them those that it is compared with, if any."""

    cells: list[Any]
    figures: dict[str, Figure]
    before: dict[str, Figure] | None


_NOTHING: Final = Figure(None, 0)


def table_of(question: Question, answer: Answer) -> tuple[list[str], list[list[Any]]]:
    """The figures of an answer as columns and rows: of each metric its value and the number of views that it rests on.

    Beside another range each has the same of it, with `_before`. Of a distribution: its bins.
    """
    if isinstance(answer, Distribution):
        return _bins(answer)
    return _with_figures(question, *_rows(answer))


def _with_figures(question: Question, key: list[str], rows: Sequence[_Row]) -> tuple[list[str], list[list[Any]]]:
    """The columns are those of the question: a file without rows has them, too."""
    names = [metric.name for metric in question.metrics]
    suffixes = [""] if question.compare is None else ["", "_before"]
    columns = [f"{name}{suffix}{of}" for name in names for suffix in suffixes for of in ("", "_n")]
    return [*key, "views", *columns], [[*row.cells, *_cells(row, names, suffixes)] for row in rows]


def table_of_errors(found: ErrorList) -> tuple[list[str], list[list[Any]]]:
    """A row for each code, in the list's order. Where codes are compared with what was, whether each is new, and both shares."""
    columns = ["code", "texts", "views", "share", "share_n", "viewers", "failed", "first_ms", "last_ms"]
    is_held = found.since_ms is not None or found.compared is not None
    held = ["is_new", "before", "before_n", "after", "after_n"] if is_held else []
    rows = []
    for one in found.errors:
        texts = " · ".join(text.value for text in one.texts if text.value is not None)
        row = [
            one.code,
            texts,
            one.views,
            one.share.value,
            one.share.n,
            one.viewers,
            one.failed,
            one.first_ms,
            one.last_ms,
        ]
        before, after = one.before or _NOTHING, one.after or _NOTHING
        rows.append([*row, *([one.is_new, before.value, before.n, after.value, after.n] if held else [])])
    return [*columns, *held], rows


def table_of_titles(question: Question, found: TitleList) -> tuple[list[str], list[list[Any]]]:
    """A row for each title, in the list's order, with its figures as `table_of` has them."""
    rows = [_Row([one.video_id, one.title, one.series, one.n], one.metrics, one.compared) for one in found.titles]
    return _with_figures(question, ["video_id", "title", "series"], rows)


def _bins(answer: Distribution) -> tuple[list[str], list[list[Any]]]:
    """A row for each bin that has a view, of either range."""
    columns = ["from_value", "to_value", "views"]
    if answer.compared is None:
        return columns, [[one.from_value, one.to_value, one.n] for one in answer.bins]
    own, before = ({(one.from_value, one.to_value): one.n for one in of.bins} for of in (answer, answer.compared))
    rows = [[*bounds, own.get(bounds, 0), before.get(bounds, 0)] for bounds in sorted(own | before)]
    return [*columns, "views_before"], rows


def _cells(row: _Row, names: Sequence[str], suffixes: Sequence[str]) -> Iterator[Any]:
    for name in names:
        for of in (row.figures, row.before or {})[: len(suffixes)]:
            figure = of.get(name, _NOTHING)
            yield figure.value
            yield figure.n


def _rows(answer: Overall | Timeseries | Breakdown) -> tuple[list[str], list[_Row]]:
    """The columns before `views`, and the rows."""
    if isinstance(answer, Overall):
        return [], [_Row([answer.n], answer.metrics, answer.compared.metrics if answer.compared else None)]
    if isinstance(answer, Breakdown):
        rows = [_Row([group.kind, *group.labels, group.n], group.metrics, group.compared) for group in answer.groups]
        return ["kind", *answer.by], rows
    before = answer.compared
    if answer.groups is None:
        return ["from_ms", "to_ms"], list(_points([], answer.points, before.points if before else None))
    earlier = {_name(group): group.points for group in (before.groups or [] if before else [])}
    points = [
        row
        for group in answer.groups
        for row in _points([group.kind, *group.labels], group.points or [], earlier.get(_name(group)))
    ]
    return ["kind", "value", "from_ms", "to_ms"], points


def _name(group: Group) -> tuple[str | None, ...]:
    return group.kind, *group.key


def _points(line: list[Any], points: Sequence[Point], before: Sequence[Point] | None) -> Iterator[_Row]:
    """The points of a line, each with the one that stands beside it."""
    for number, point in enumerate(points):
        earlier = None if before is None else before[number].metrics
        yield _Row([*line, point.from_ms, point.to_ms, point.n], point.metrics, earlier)
