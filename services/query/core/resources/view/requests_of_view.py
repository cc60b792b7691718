"""The requests of one view's player for media, made from the beacons behind it. Their meaning is `shared.requests`. Pure."""

import bisect
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec

from services.accounts.core.pages import MEANT, CursorWrong, Page
from services.query.core.problems import wrong
from services.query.core.resources.view.one_view import AskedView, Row
from services.query.core.resources.view.requests_read import Found, Moment, requests_of
from shared.requests.request import CANCELED, COMPLETED, FAILED

REQUESTS_MAX: Final = 1_000
_MOMENT: Final = re.compile(r"(-?\d{1,19}) (\d{1,10}) ([0-9a-f]{0,16})", re.ASCII)

Outcome = Literal["completed", "failed", "canceled"]
_OUTCOMES: Final[Mapping[int, Outcome]] = {COMPLETED: "completed", FAILED: "failed", CANCELED: "canceled"}


class AskedRequests(AskedView, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a view's requests."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=REQUESTS_MAX, description="requests of a page")] = REQUESTS_MAX
    cursor: Annotated[str, msgspec.Meta(description=MEANT)] = ""


class MediaRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A request of the player. What is not reported is left out. Of a URL it has host and file: the rest may hold tokens."""

    #: When it began, from the view's start as `at_ms` of its events; negative: before it.
    at_ms: int
    outcome: Outcome
    ttfb_ms: int | None = None
    time_ms: int | None = None
    size_bytes: int | None = None
    throughput_bps: int | None = None
    kind: str | None = None
    host: str | None = None
    file: str | None = None
    #: Of a failed one: the status or code that the client reports.
    code: str | None = None


class RequestList(msgspec.Struct, frozen=True, omit_defaults=True):
    """Requests of a view in the order in which they began, of its first `beacons_n` beacons; `is_cut`: there are more beacons.

    `requests_n` counts those of all pages.
    """

    view_id: str
    requests: list[MediaRequest]
    requests_n: int
    beacons_n: int
    is_cut: bool
    next: str | None = None


def page_of(view_id: str, asked: AskedRequests) -> tuple[Page, Moment | None]:
    """The page that is asked for, and the request after which it begins; raises `Wrong`."""
    try:
        page = Page(f"requests {view_id}", asked)
        return page, _moment_in(page.after) if page.after else None
    except CursorWrong:
        raise wrong("cursor", MEANT) from None


def request_list(row: Row, page: Page, behind: Moment | None, rows: Sequence[Row], is_cut: bool) -> RequestList:
    """A page of the requests in these beacons; `is_cut`: there are more beacons."""
    found, start_ms = requests_of(row, (bytes(one["value"] or b"") for one in rows))
    # One that came between two pages moves none of the others to another page.
    first = 0 if behind is None else bisect.bisect_right(found, behind, key=lambda one: one.moment)
    listed, following = page.cut(found[first : first + page.rows_max], lambda one: " ".join(map(str, one.moment)))
    requests = [_told(one, start_ms) for one in listed]
    return RequestList(row["view_id"], requests, len(found), len(rows), is_cut, following)


def _moment_in(key: str) -> Moment:
    found = _MOMENT.fullmatch(key)
    if found is None:
        raise CursorWrong
    return Moment(int(found[1]), int(found[2]), found[3])


def _told(one: Found, start_ms: int) -> MediaRequest:
    about, time_ms, size_bytes = one.about, one.time_ms, one.size_bytes
    return MediaRequest(
        at_ms=one.moment.at_ms - start_ms,
        outcome=_OUTCOMES[one.outcome],
        ttfb_ms=one.ttfb_ms,
        time_ms=time_ms,
        size_bytes=size_bytes,
        throughput_bps=None if not time_ms or size_bytes is None else round(8_000 * size_bytes / time_ms),
        kind=about.kind or None,
        host=about.host or about.url_host or None,
        file=about.file or None,
        code=one.code,
    )
