"""The requests of one view's player for media, made from the beacons behind it. Their meaning is `shared.requests`. Pure."""

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from services.accounts.core.pages import MEANT, CursorWrong, Page
from services.query.core.problems import wrong
from services.query.core.resources.one_view import AskedView, Row
from shared import codec
from shared.client_values import scalar, whole
from shared.requests import reading
from shared.requests.request import CANCELED, COMPLETED, FAILED, Request
from shared.schemas.beacon import Beacon
from shared.sources import SOURCES, Ordering, Source

REQUESTS_MAX: Final = 1_000
#: Beacons of a view that are read for its requests: those of some hours.
BEACONS_READ_MAX: Final = 10_000
#: Further from the beacon's own time than this a client's time of a request is by another clock.
_SAME_CLOCK_MS: Final = 86_400_000
_NAME_CHARS_MAX: Final = 100
#: Where a longer one ends a path, it is more likely a token than a file's name.
_FILE_CHARS_MAX: Final = 80
_CODE: Final = re.compile(r"[\w .-]{1,50}")
_HOST: Final = re.compile(r"[\w.:\[\]-]{1,253}")
#: `ot` of CTA-5004.
_KINDS: Final = {
    "m": "manifest",
    "a": "audio",
    "v": "video",
    "av": "audio and video",
    "i": "init",
    "c": "captions",
    "tt": "timed text",
    "k": "key",
    "o": "other",
}

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


class _About(NamedTuple):
    """What a beacon says of a request beside its figures."""

    kind: Any
    host: Any
    url: Any


def page_of(view_id: str, asked: AskedRequests) -> tuple[Page, int]:
    """The page that is asked for, and how many requests come before it; raises `Wrong`."""
    try:
        page = Page(f"requests {view_id}", asked)
        return page, page.number or 0
    except CursorWrong:
        raise wrong("cursor", MEANT) from None


def request_list(row: Row, values: Sequence[bytes], page: Page, before: int) -> RequestList:
    """A page of the requests in these beacons, one more of which than are read says that there are more."""
    beacons = _decoded(values[:BEACONS_READ_MAX])
    found = _requests(row, beacons)
    numbered = list(enumerate(found[before : before + page.rows_max], before + 1))
    listed, following = page.cut(numbered, lambda one: str(one[0]))
    read = min(len(values), BEACONS_READ_MAX)
    requests = [request for _, request in listed]
    return RequestList(row["view_id"], requests, len(found), read, len(values) > BEACONS_READ_MAX, following)


def _decoded(values: Iterable[bytes]) -> list[Beacon]:
    found = []
    for value in values:
        with contextlib.suppress(codec.Undecodable):
            found.append(codec.BEACON.decode(value))
    return found


def _requests(row: Row, beacons: Sequence[Beacon]) -> list[MediaRequest]:
    """Of the client that makes the row, each once. Of a session with several plays those within this one."""
    source = SOURCES.get(row["source"])
    if source is None or source.name not in _READ:
        return []
    own = [beacon for beacon in beacons if beacon.source == source.name]
    # As the view's clock offset: the fastest request is the least delayed one.
    offsets = [beacon.clock_offset_ms for beacon in own if beacon.clock_offset_ms is not None]
    start_ms = row["view_start_ms"] - min(offsets, default=0)
    length_ms = row["view_end_ms"] - row["view_start_ms"]
    found: list[tuple[int, MediaRequest]] = []
    last: list[int | None] = []
    last_about = _About(None, None, None)
    for beacon in _in_order(own, source):
        request, about = _READ[beacon.source](beacon)
        sent = reading.filled(request, last)
        if request.is_delta:
            about = _About(*(before if now is None else now for before, now in zip(last_about, about, strict=True)))
            last, last_about = sent, about
        one = _listed(beacon, request.outcome, sent, about, start_ms)
        is_before = (row.get("view_epoch") or 1) > 1 and one.at_ms + (one.time_ms or 0) < 0
        if not (source.has_plays and (is_before or one.at_ms > length_ms)):
            found.append((beacon.seq or 0, one))
    return [one for _, one in sorted(found, key=lambda pair: (pair[1].at_ms, pair[0]))]


def _in_order(beacons: Iterable[Beacon], source: Source) -> list[Beacon]:
    """Those of requests, each once: of several copies the one received first, as the fold counts them."""
    by_number, has_plays = source.ordering is Ordering.NUMBER, source.has_plays
    found: dict[object, Beacon] = {}
    for beacon in sorted(beacons, key=lambda one: one.recv_time_ms):
        if beacon.event != "request" or (by_number and (beacon.seq is None or beacon.seq < (source.first_number or 0))):
            continue
        key: object = beacon.seq
        if not by_number:
            key = (beacon.client_time_ms, beacon.seq, msgspec.json.encode(beacon.attrs, order="sorted"))
        elif has_plays:
            key = (beacon.client_time_ms, beacon.seq)
        found.setdefault(key, beacon)
    if by_number and not has_plays:
        return sorted(found.values(), key=lambda one: one.seq or 0)
    return list(found.values())


def _of_mux(beacon: Beacon) -> tuple[Request, _About]:
    attrs = beacon.attrs
    about = _About(attrs.get("request_type"), attrs.get("request_hostname"), attrs.get("request_url"))
    return reading.of_mux(beacon.source_event, attrs), about


def _of_cmcd(beacon: Beacon) -> tuple[Request, _About]:
    attrs = beacon.attrs
    kind = scalar(attrs.get("ot"))
    about = _About(_KINDS.get(kind) if isinstance(kind, str) else None, None, scalar(attrs.get("url")))
    return reading.of_cmcd(attrs, whole(beacon.client_time_ms)), about


def _of_native(beacon: Beacon) -> tuple[Request, _About]:
    return reading.of_native(beacon.attrs), _About(None, None, None)


_READ: Final = {"mux": _of_mux, "cmcd": _of_cmcd, "native": _of_native}


def _listed(beacon: Beacon, outcome: int, sent: Sequence[int | None], about: _About, start_ms: int) -> MediaRequest:
    begun_ms, first_ms, end_ms, size_bytes = sent
    if outcome != COMPLETED and begun_ms is not None:
        # A client that gave up may repeat these of the request before.
        if end_ms is not None and end_ms < begun_ms:
            end_ms = size_bytes = None
        first_ms = None if first_ms is not None and first_ms < begun_ms else first_ms
    time_ms = None if begun_ms is None or end_ms is None else reading.took_ms(begun_ms, end_ms)
    ttfb_ms = None if begun_ms is None or first_ms is None else reading.took_ms(begun_ms, first_ms)
    at_ms = whole(beacon.client_time_ms)
    if begun_ms is not None and abs(begun_ms - at_ms) <= _SAME_CLOCK_MS:
        at_ms = begun_ms
    else:
        # By a clock of the client's own: it is reported when it is over.
        at_ms -= time_ms or 0
    host, file = _place(about.host, about.url)
    return MediaRequest(
        at_ms=at_ms - start_ms,
        outcome=_OUTCOMES[outcome],
        ttfb_ms=ttfb_ms,
        time_ms=time_ms,
        size_bytes=size_bytes,
        throughput_bps=None if not time_ms or size_bytes is None else round(8_000 * size_bytes / time_ms),
        kind=about.kind[:_NAME_CHARS_MAX] if isinstance(about.kind, str) else None,
        host=host,
        file=file,
        code=_code(beacon) if outcome == FAILED else None,
    )


def _place(host: Any, url: Any) -> tuple[str | None, str | None]:
    """Host and file of a request, without what may be secret: who asks, query, fragment, and all of the path but its end."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        is_file = parts.scheme in ("http", "https", "")
        of_url = parts.hostname if is_file else None
        file = parts.path.rpartition("/")[2].partition(";")[0] if is_file else ""
    except ValueError:
        of_url, file = None, ""
    named = host if isinstance(host, str) and _HOST.fullmatch(host) else of_url
    # A name with = is a parameter, as signed paths have them.
    is_name = 0 < len(file) <= _FILE_CHARS_MAX and "=" not in file and "%3d" not in file.lower()
    return named, file if is_name else None


def _code(beacon: Beacon) -> str | None:
    name = {"mux": "request_error_code", "cmcd": "rc"}.get(beacon.source, "")
    value = scalar(beacon.attrs.get(name))
    is_code = isinstance(value, int | str) and not isinstance(value, bool)
    return str(value) if is_code and _CODE.fullmatch(str(value)) else None
