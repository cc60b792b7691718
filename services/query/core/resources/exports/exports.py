"""Exports: a question or a search whose whole answer becomes a file. Its request, its state, and its rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import msgspec

from services.accounts.core import pages
from services.accounts.core.customer_scope import CustomerScope
from services.accounts.core.pages import CursorWrong, Page
from services.query.core.calendar import Range
from services.query.core.customers import Admit, Customers
from services.query.core.limits import GROUPS_MAX
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
from services.query.core.resources.errors import errors
from services.query.core.resources.errors.errors import AskedErrors, ErrorsQuestion
from services.query.core.resources.search import AskedViews, Search
from services.query.core.resources.titles import titles
from services.query.core.resources.titles.titles import AskedTitles, TitlesQuestion

Of = Literal["views", "overall", "timeseries", "breakdown", "distribution", "errors", "titles"]
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
_LISTED: Final = ("views", "errors", "titles")
#: Codes or titles of a file, the first ones in their order.
LISTED_MAX: Final = GROUPS_MAX
#: What a page of a search says, and an export, which has all rows, does not.
_OF_PAGES: Final = frozenset({"cursor", "limit", "format"})


class NewExport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be exported: a search for views (`of: views`), a list, or a question, with the parameters of its path."""

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
    #: Whom its question names, by their ids or parts of these: who makes or fetches it looks at them.
    viewers: list[str] = []
    #: Whether its rows are of single views or viewers: who has not the permission for these does not see it.
    is_of_viewers: bool = False

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
    """What a job asks, checked: a search, a list, or else a question about figures. `question` is what it reads."""

    question: Question
    search: Search | None = None
    errors: ErrorsQuestion | None = None
    titles: TitlesQuestion | None = None

    @property
    def viewers(self) -> tuple[str, ...]:
        """The viewers that it names."""
        return self.question.viewers

    @property
    def is_of_viewers(self) -> bool:
        """Whether its rows are of single views or viewers."""
        return self.search is not None or self.question.is_of_viewers

    @property
    def range(self) -> Range:
        """The range that is asked for: `question` may read others, too."""
        return self.question.range if self.errors is None else self.errors.range


def wanted(of: Of, parameters: dict[str, str], admit: Admit, now_ms: int, *, days_max: int, rows_max: int) -> Wanted:
    """What is asked for; raises `Wrong`, and what `admit` raises."""
    if of in _LISTED and (taken := _OF_PAGES & parameters.keys()):
        raise wrong(sorted(taken)[0], "of pages: an export has all rows")
    given = list(parameters.items())
    if of == "errors":
        codes = errors.understood(parsed(AskedErrors, given), admit, now_ms, days_max=days_max)
        return Wanted(codes.question, errors=replace(codes, limit=LISTED_MAX))
    if of == "titles":
        listed = titles.understood(parsed(AskedTitles, given), admit, now_ms, days_max=days_max)
        whole = replace(listed, question=replace(listed.question, limit=LISTED_MAX))
        return Wanted(whole.question, titles=whole)
    if of == "views":
        asked = search.understood(parsed(AskedViews, given), admit, now_ms, days_max=days_max)
        found = Search(asked.question, asked.columns, asked.order_by, asked.is_ascending, rows_max, asked.name)
        return Wanted(found.question, search=found)
    return Wanted(understood(parsed(_KINDS[of], given), admit, now_ms, days_max=days_max))


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
