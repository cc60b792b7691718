"""Exports: a question or a search whose whole answer becomes a file. Its request, its state, and its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec

from services.accounts.core import pages
from services.accounts.core.customer_scope import CustomerScope
from services.accounts.core.pages import CursorWrong, Page
from services.query.core.answer import Answer, Breakdown, Distribution, Figure, Group, Overall, Point, Timeseries
from services.query.core.customers import Admit, Customers
from services.query.core.problems import wrong
from services.query.core.question import (
    AnyAsked,
    Asked,
    AskedBreakdown,
    AskedDistribution,
    AskedSeries,
    Question,
    parsed,
    understood,
)
from services.query.core.resources import search
from services.query.core.resources.search import AskedViews, Search

Of = Literal["views", "overall", "timeseries", "breakdown", "distribution"]
Format = Literal["csv", "parquet"]
#: `queued` and `running` go on after a restart, from the beginning.
State = Literal["queued", "running", "done", "failed"]
PARAMETERS_MAX: Final = 50
#: Of an organisation, those that are done among them.
EXPORTS_MAX: Final = 200
MEDIA: Final[dict[Format, str]] = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
_KINDS: Final[dict[Of, type[AnyAsked]]] = {
    "overall": Asked,
    "timeseries": AskedSeries,
    "breakdown": AskedBreakdown,
    "distribution": AskedDistribution,
}
#: What a page of a search says, and an export, which has all rows, does not.
_OF_PAGES: Final = frozenset({"cursor", "limit", "format"})


class NewExport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be exported: a search for views (`of: views`), or a question, with the parameters of its path."""

    of: Of
    format: Format = "csv"
    parameters: Annotated[dict[str, str], msgspec.Meta(max_length=PARAMETERS_MAX)] = {}


class Job(msgspec.Struct, frozen=True):
    """An export as it is stored. The range is fixed: it is that of the moment at which it was asked for."""

    id: str
    organisation_id: str
    actor: str
    of: Of
    format: Format
    parameters: dict[str, str]
    #: Whose views: those that its maker might see. None: all but `customers_but`.
    customers: list[str] | None
    customers_but: list[str]
    created_ms: int
    expires_ms: int
    state: State = "queued"
    rows: int | None = None
    bytes: int | None = None
    #: Why there is no result.
    problem: str | None = None

    @property
    def whose(self) -> Customers:
        """The customers that it is of."""
        return Customers(None if self.customers is None else tuple(self.customers), tuple(self.customers_but))

    @property
    def is_over(self) -> bool:
        """Whether nothing happens to it any more."""
        return self.state in {"done", "failed"}

    @property
    def shown(self) -> "Export":
        """The job as it is answered."""
        href = f"/v1/exports/{self.id}/file" if self.state == "done" else None
        return Export(
            self.id,
            self.of,
            self.format,
            self.parameters,
            self.state,
            self.actor,
            self.created_ms,
            self.expires_ms,
            self.rows,
            self.bytes,
            self.problem,
            href,
        )


class Export(msgspec.Struct, frozen=True, omit_defaults=True):
    """An export. `href` is where its file is, from `state` done on until `expires_ms`."""

    id: str
    of: Of
    format: Format
    parameters: dict[str, str]
    state: State
    made_by: str
    created_ms: int
    expires_ms: int
    rows: int | None = None
    bytes: int | None = None
    problem: str | None = None
    href: str | None = None


class AskedExports(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The page of the list."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=EXPORTS_MAX)] = EXPORTS_MAX
    cursor: Annotated[str, msgspec.Meta(description=pages.MEANT)] = ""


class ExportList(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of the exports of the asker's organisation that the asker may see, the newest first."""

    exports: list[Export]
    #: The cursor of the next page; absent on the last one.
    next: str | None = None


@dataclass(frozen=True)
class Wanted:
    """What a job asks, checked: a search, or a question about figures."""

    search: Search | None
    question: Question


def wanted(of: Of, parameters: dict[str, str], admit: Admit, now_ms: int, *, days_max: int, rows_max: int) -> Wanted:
    """What is asked for; raises `Wrong`, and what `admit` raises."""
    if of == "views":
        if taken := _OF_PAGES & parameters.keys():
            raise wrong(sorted(taken)[0], "of pages: an export has all rows")
        asked = search.understood(parsed(AskedViews, list(parameters.items())), admit, now_ms, days_max=days_max)
        found = Search(asked.question, asked.columns, asked.order_by, asked.is_ascending, rows_max, asked.name)
        return Wanted(found, found.question)
    return Wanted(None, understood(parsed(_KINDS[of], list(parameters.items())), admit, now_ms, days_max=days_max))


def page_of(asked: AskedExports, jobs: Sequence[Job]) -> ExportList:
    """A page of these jobs, the newest first, of equal times by id; raises `Wrong`."""
    newest = sorted(jobs, key=_place, reverse=True)
    try:
        page = Page("exports", asked)
        place = page.place
    except CursorWrong:
        raise wrong("cursor", pages.MEANT) from None
    if place is not None:
        newest = [job for job in newest if _place(job) < place]
    listed, after = page.cut(newest, lambda job: pages.timed_key(*_place(job)))
    return ExportList([job.shown for job in listed], after)


def _place(job: Job) -> tuple[int, str]:
    return job.created_ms, job.id


def may_see(scope: CustomerScope, whose: Customers) -> bool:
    """Whether somebody may see all that an export has."""
    if whose.only is not None:
        return all(map(scope.has, whose.only))
    return scope.all_but is not None and scope.all_but <= set(whose.but)


@dataclass(frozen=True)
class _Row:
    """A row of figures: its place and number of views, and its figures; beside them those that it is compared with, if any."""

    cells: list[Any]
    figures: dict[str, Figure]
    before: dict[str, Figure] | None


_NOTHING: Final = Figure(None, 0)


def table_of(answer: Answer) -> tuple[list[str], list[list[Any]]]:
    """The figures of an answer as columns and rows: of each metric its value and the number of views that it rests on.

    Beside another range each has the same of it, with `_before`. Of a distribution: its bins.
    """
    if isinstance(answer, Distribution):
        return _bins(answer)
    key, rows = _rows(answer)
    names = list(rows[0].figures) if rows else []
    suffixes = ["", "_before"] if any(row.before is not None for row in rows) else [""]
    columns = [f"{name}{suffix}{of}" for name in names for suffix in suffixes for of in ("", "_n")]
    return [*key, "views", *columns], [[*row.cells, *_cells(row, names, suffixes)] for row in rows]


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
    earlier = {_name(group): group.points or [] for group in (before.groups or [] if before else [])}
    points = [
        row
        for group in answer.groups
        for row in _points(
            [group.kind, *group.labels], group.points or [], earlier.get(_name(group), []) if before else None
        )
    ]
    return ["kind", "value", "from_ms", "to_ms"], points


def _name(group: Group) -> tuple[str | None, ...]:
    return group.kind, *group.key


def _points(line: list[Any], points: Sequence[Point], before: Sequence[Point] | None) -> Iterator[_Row]:
    """The points of a line, each with the one that stands beside it. A line of `before` may be missing, and is then empty."""
    for number, point in enumerate(points):
        earlier = None if before is None else before[number].metrics if before else {}
        yield _Row([*line, point.from_ms, point.to_ms, point.n], point.metrics, earlier)
