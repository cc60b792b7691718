"""One view: its row, its dimensions, its timeline, its recording, and the beacons behind it."""

import base64
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, cast

import msgspec

from services.accounts.core.pages import MEANT, CursorWrong, Page, number_of, timed_key
from services.query.core.dimensions import CUSTOM, DIMENSIONS, value_of
from services.query.core.fields import SINGLE
from services.query.core.problems import wrong
from services.query.core.undecided import undecided
from shared.codec import NO_JSON
from shared.schemas.recording import SESSION_ID
from shared.schemas.view import View
from shared.sources import SOURCES

BEACONS_MAX: Final = 500
#: Bytes of the beacons of a page.
BEACONS_BYTES_MAX: Final = 8_000_000
#: Beacons of a view of which something is made, as its requests or its timeline: those of some hours.
BEACONS_READ_MAX: Final = 10_000
#: And their bytes: of beacons of the usual size as many as that.
BYTES_READ_MAX: Final = 32_000_000
#: What of a row is answered apart from it.
_APART: Final = frozenset({"events", "custom", "deleted", "hour"})
_COUNTED_LATER_MS: Final = 3_600_000
_COUNTED_EARLIER_MS: Final = 86_400_000

Row = Mapping[str, Any]
FoundIn = Literal["processor", "hot_rows", "warehouse"]
#: `open`: it goes on. `finished`: its row may still change. `closed`: it does not.
State = Literal["open", "finished", "closed"]


class AskedView(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of one view."""

    customer: Annotated[str, msgspec.Meta(description="the customer whose view it is")]
    day: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None,
        msgspec.Meta(description="`day` of its row, where an id was used on several days"),
    ] = None


class AskedBeacons(AskedView, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a view's beacons."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=BEACONS_MAX, description="beacons of a page")] = 100
    cursor: Annotated[str, msgspec.Meta(description=MEANT)] = ""


class Recording(msgspec.Struct, frozen=True, omit_defaults=True):
    """The recording of the view's session, and where the page plays it. Times are those at which payloads came."""

    session_id: str
    payloads: int
    first_ms: int
    last_ms: int
    href: str


class ViewDetail(msgspec.Struct, frozen=True, omit_defaults=True):
    """One view. `row` has its fields as `docs/view.md` lists them, `events` its timeline.

    `at_ms` of an event counts from `view_start_ms`. While the view is open, what its end decides is null in `row` and `dimensions`:
    why it ended, whether it was dropped, is complete, was left before its start, or was good, and that it never started.
    """

    state: State
    found_in: FoundIn
    row: dict[str, Any]
    #: Every dimension, those of the customer's own among them; null where unknown.
    dimensions: dict[str, str | None]
    #: When it counts, ms since 1970.
    counted_ms: int
    events: list[dict[str, Any]]
    recording: Recording | None = None
    #: Parts of the installation that did not answer, so that something may be missing here.
    away: list[str] = []


class BeaconOfView(msgspec.Struct, frozen=True):
    """A beacon as it was appended: its place in topic `beacons`, and what it says. `beacon` is null where `bytes` is no JSON."""

    partition: int
    offset: int
    appended_ms: int
    beacon: dict[str, Any] | None
    bytes: str | None = None


class BeaconList(msgspec.Struct, frozen=True, omit_defaults=True):
    """Beacons of a view in the order of their append; the warehouse has them about a minute after that."""

    view_id: str
    beacons: list[BeaconOfView]
    next: str | None = None


def detail(
    row: Row,
    state: State,
    found_in: FoundIn,
    recording: Recording | None,
    away: list[str],
) -> ViewDetail:
    """The answer that a row makes, from wherever it is."""
    whole = {**_DEFAULTS, **{name: value for name, value in row.items() if name in _KNOWN}}
    if state == "open":
        whole |= dict.fromkeys(undecided(whole))
    custom = {str(name): str(value) for name, value in (whole["custom"] or {}).items()}
    dimensions = {name: value_of(one, whole) for name, one in DIMENSIONS.items()}
    dimensions |= {f"{CUSTOM}{name}": value for name, value in custom.items()}
    return ViewDetail(
        state,
        found_in,
        {name: value for name, value in whole.items() if name not in _APART},
        dimensions,
        counted_ms(whole),
        [dict(event) for event in whole["events"] or []],
        recording,
        away,
    )


def counted_ms(row: Row) -> int:
    """When a view counts: `shared.measures.COUNTED_MS`."""
    latest = min(row["view_end_ms"], row["last_append_ms"] + _COUNTED_LATER_MS)
    return int(max(latest, row["first_append_ms"] - _COUNTED_EARLIER_MS))


def session_of(row: Row) -> str | None:
    """The session whose recording may belong to the view."""
    session = row.get("session_id")
    return session if isinstance(session, str) and SESSION_ID.fullmatch(session) else None


def page_of(view_id: str, asked: AskedBeacons) -> tuple[Page, tuple[int, int] | None]:
    """The page that is asked for, and append time and offset of the beacon after which it begins; raises `Wrong`."""
    try:
        page = Page(f"beacons {view_id}", asked)
        place = page.place
        return page, None if place is None else (place[0], number_of(place[1]))
    except CursorWrong:
        raise wrong("cursor", MEANT) from None


def beacons_key(row: Row) -> str:
    """The view id that the beacons behind a row have: of a later play of a session that of the session."""
    source = SOURCES.get(row.get("source") or "")
    if source is not None and source.has_plays and (row.get("view_epoch") or 1) > 1:
        return str(row["view_id"]).rpartition(".")[0]
    return str(row["view_id"])


def beacon_list(view_id: str, page: Page, rows: Sequence[Row], is_cut: bool) -> BeaconList:
    """A page of the rows that were read for it; `is_cut`: there are more."""
    listed, following = page.cut(rows, lambda row: timed_key(row["appended_ms"], str(row["offset"])), has_more=is_cut)
    return BeaconList(view_id, [_beacon(row) for row in listed], following)


def _beacon(row: Row) -> BeaconOfView:
    value = bytes(row["value"] or b"")
    try:
        msgspec.json.decode(value, type=dict[str, Any])
    except NO_JSON:
        encoded = base64.b64encode(value).decode()
        return BeaconOfView(row["partition"], row["offset"], row["appended_ms"], None, encoded)
    # As it is: what JSON holds may take twenty times its bytes.
    found = cast(dict[str, Any], msgspec.Raw(value))
    return BeaconOfView(row["partition"], row["offset"], row["appended_ms"], found)


def _defaults() -> dict[str, Any]:
    found = {}
    for field in msgspec.structs.fields(View):
        if field.default_factory is not msgspec.NODEFAULT:
            found[field.name] = field.default_factory()
        elif field.default is not msgspec.NODEFAULT:
            found[field.name] = field.default
    return found


#: What an absent field of a row means.
_DEFAULTS: Final = _defaults()
_KNOWN: Final = frozenset({*SINGLE, *(field.name for field in msgspec.structs.fields(View))})
