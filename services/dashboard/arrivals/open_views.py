"""The answer of `/v1/open-views`: views that are still open, among those with the newest beacons. Pure; bounded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from services.accounts.core.pages import MEANT
from services.dashboard.arrivals.picture import Read
from services.query.core import cursors, filters, limits
from services.query.core.calendar import Range
from services.query.core.dimensions import VIEWER_ID
from services.query.core.filters import Filter
from services.query.core.problems import wrong
from services.query.core.question import moment_of, zone_of
from services.query.core.undecided import undecided
from shared.schemas.view import View

#: So many views of a customer are looked up for one question; of a session so many plays.
LOOKED_UP_MAX: Final = 100
PLAYS_MAX: Final = 8
#: In a cursor: `until_ms`, and the last candidate before the page.
_PLACE: Final = (int, int, int, str)
_TEXT: Final = msgspec.Meta(max_length=500)


class AskedOpenViews(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters; each narrows the answer, as in the search for finished views. `from` and `to` are of a view's start."""

    customer: Annotated[str, msgspec.Meta(description="a customer")]
    viewer: Annotated[str, _TEXT, msgspec.Meta(description="the id of a viewer, whole")] = ""
    title: Annotated[str, _TEXT, msgspec.Meta(description="a part of the video's title")] = ""
    error: Annotated[str, _TEXT, msgspec.Meta(description="an error code, whole")] = ""
    score_at_least: Annotated[float | None, msgspec.Meta(description="of the experience score, 0 to 100")] = None
    score_below: Annotated[float | None, msgspec.Meta(description="of the experience score, 0 to 100")] = None
    from_: Annotated[str, msgspec.Meta(description="views that began at this moment or later")] = msgspec.field(
        name="from", default=""
    )
    to: Annotated[str, msgspec.Meta(description="views that began before this moment")] = ""
    tz: Annotated[str, msgspec.Meta(description="IANA time zone of times without one")] = "UTC"
    filter: Annotated[
        str, msgspec.Meta(description="as of any question; what the end of a view decides is unknown of each")
    ] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=LOOKED_UP_MAX, description="views of a page")] = 50
    cursor: Annotated[str, msgspec.Meta(description=MEANT)] = ""


class OpenViews(msgspec.Struct, frozen=True):
    """The views that match, the one with the newest beacon first, each with the fields of its row as it is now, without its events.

    Dimensions whose names are not those of fields are given too, `custom.<name>` among them. What the end of a view decides is left
    out: why it ended, whether it was dropped, is complete, was left before its start, or was good, and that it never started.
    `views_n` views have beacons of the last `seconds`, some of which may be over; `is_cut`: at least so many, as more beacons came
    than are read. Of these `looked_up_n` were looked up for this page. `next` is the `cursor` of the page of those behind them.
    """

    now_ms: int
    seconds: int
    views_n: int
    is_cut: bool
    looked_up_n: int
    views: list[dict[str, Any]]
    next: str | None


@dataclass(frozen=True, order=True)
class Candidate:
    """A view (of CMCD: a session) to look up. Their order is that of the list."""

    #: How many of the texts that are looked for its beacons lack.
    texts_missing: int
    #: Less than 0: the newest comes first.
    minus_newest_ms: int
    view_id: str


@dataclass(frozen=True)
class Search:
    """What is looked for, checked."""

    asked: AskedOpenViews
    #: Names the list, so that a cursor of another one is refused.
    name: str
    filter: Filter | None
    #: Of a view's start.
    within: Range
    #: Of a later page, the last candidate before it.
    behind: Candidate | None
    #: Of a later page, the append time of the newest beacon that the first one rests on.
    until_ms: int | None


@dataclass(frozen=True)
class Candidates:
    """Those of a page, at most `LOOKED_UP_MAX`."""

    listed: Sequence[Candidate]
    has_more: bool
    #: Of all pages.
    count: int
    #: The append time of the newest beacon that the list rests on.
    until_ms: int


class _Found(msgspec.Struct):
    state: str
    row: dict[str, Any] | None = None


class _Answer(msgspec.Struct):
    found: _Found


_ANSWER: Final = msgspec.json.Decoder(_Answer)
#: What a field that a row leaves out means, where that is a value.
_DEFAULTS: Final = {
    field.name: field.default
    for field in msgspec.structs.fields(View)
    if field.default is not msgspec.NODEFAULT and field.default is not None
}


def understood(asked: AskedOpenViews) -> Search:
    """The search that is asked for; raises `Wrong`."""
    name, behind, until_ms = cursors.name_of(asked, limit=1), None, None
    if asked.cursor:
        bounds, (until_ms, texts_missing, newest_ms, view_id) = cursors.opened(asked, name, _PLACE)
        within = Range(int(bounds["from_"]), int(bounds["to"]))
        behind = Candidate(texts_missing, -newest_ms, view_id)
    else:
        zone = zone_of(asked.tz)
        from_ms = moment_of("from", asked.from_, zone) if asked.from_ else limits.FIRST_MS
        within = Range(from_ms, moment_of("to", asked.to, zone) if asked.to else limits.LAST_MS)
    if within.from_ms >= within.to_ms:
        raise wrong("from", "before `to`")
    given = filters.parsed(asked.filter) if asked.filter else None
    return Search(asked, name, given, within, behind, until_ms)


def viewers_of(search: Search) -> list[str]:
    """The viewers that the search names, by their ids or parts of these: who looks at single ones is noted."""
    named = () if search.filter is None else filters.named_of(search.filter, VIEWER_ID)
    asked = [search.asked.viewer] if search.asked.viewer else []
    return list(dict.fromkeys([*asked, *named]))


def candidates(search: Search, beacons: Iterable[Read]) -> Candidates:
    """The customer's views (of CMCD: sessions) to look up for the page.

    Those come first whose beacons have the texts that are looked for; then those with the newest beacons. Beacons that have come
    since the first page move no view to another place.
    """
    asked = search.asked
    prefix = f"{asked.customer}:".encode()
    texts = [text.encode().lower() for text in (asked.viewer, asked.title) if text]
    newest: dict[bytes, int] = {}
    seen: dict[bytes, set[bytes]] = {}
    for record in beacons:
        # What has a null character is no view's id.
        if record.key is None or not record.key.startswith(prefix) or b"\0" in record.key:
            continue
        if search.until_ms is not None and record.appended_ms > search.until_ms:
            continue
        newest[record.key] = max(record.appended_ms, newest.get(record.key, 0))
        if texts:
            value = record.value.lower()
            seen.setdefault(record.key, set()).update(text for text in texts if text in value)
    ranked = sorted(
        Candidate(len(texts) - len(seen.get(key, ())), -at_ms, key.removeprefix(prefix).decode(errors="replace"))
        for key, at_ms in newest.items()
    )
    behind = search.behind
    rest = ranked if behind is None else [one for one in ranked if one > behind]
    until_ms = search.until_ms if search.until_ms is not None else max(newest.values(), default=0)
    return Candidates(rest[:LOOKED_UP_MAX], len(rest) > LOOKED_UP_MAX, len(ranked), until_ms)


def cursor_behind(search: Search, last: Candidate, until_ms: int) -> str:
    """The cursor of the page behind this candidate."""
    place = [until_ms, last.texts_missing, -last.minus_newest_ms, last.view_id]
    return cursors.closed(search.name, search.within, place)


def row_of(answer: bytes) -> tuple[bool, dict[str, Any] | None]:
    """Whether a view is over, and its row while it is not; of an answer of the processor's lookups."""
    found = _ANSWER.decode(answer).found
    if found.state != "open" or found.row is None:
        return True, None
    left_out = {"events", *undecided(found.row)}
    row = {name: value for name, value in (_DEFAULTS | found.row).items() if name not in left_out}
    dimensions = {"customer": row.get("customer_id"), "viewer": row.get("viewer_user_id") or row.get("viewer_id")}
    return False, row | dimensions | {f"custom.{name}": value for name, value in (row.get("custom") or {}).items()}


def matches(search: Search, row: dict[str, Any]) -> bool:
    """Whether a row is what is looked for."""
    asked, score = search.asked, row.get("score_view")
    return (
        (not asked.viewer or row.get("viewer") == asked.viewer)
        and asked.title.lower() in (row.get("video_title") or "").lower()
        and (not asked.error or row.get("error_code") == asked.error)
        and (asked.score_at_least is None or (score is not None and score >= asked.score_at_least))
        and (asked.score_below is None or (score is not None and score < asked.score_below))
        and search.within.from_ms <= row.get("view_start_ms", limits.FIRST_MS) < search.within.to_ms
        and (search.filter is None or filters.holds(search.filter, row))
    )
