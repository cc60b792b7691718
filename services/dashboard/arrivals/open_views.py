"""The answer of `/v1/open-views`: views that are still open, among those with the newest beacons. Pure; bounded."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec

from services.dashboard.arrivals.picture import Read
from shared.schemas.view import View

#: So many views of a customer are looked up for one question; of a session so many plays.
LOOKED_UP_MAX: Final = 60
PLAYS_MAX: Final = 8
_TEXT: Final = msgspec.Meta(max_length=500)


class AskedOpenViews(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters; each narrows the answer, as in the search for finished views."""

    customer: Annotated[str, msgspec.Meta(description="a customer")]
    viewer: Annotated[str, _TEXT, msgspec.Meta(description="the id of a viewer, whole")] = ""
    title: Annotated[str, _TEXT, msgspec.Meta(description="a part of the video's title")] = ""
    error: Annotated[str, _TEXT, msgspec.Meta(description="an error code, whole")] = ""
    score_below: Annotated[float | None, msgspec.Meta(description="of the experience score, 0 to 100")] = None


class OpenViews(msgspec.Struct, frozen=True):
    """The views that match, the one with the newest beacon first, each with the fields of its row as it is now, without its events.

    Dimensions whose names are not those of fields are given too, `custom.<name>` among them.
    `looked_up_n` views had the newest beacons of the last `seconds`; `is_cut`: there were more, or not all could be looked up.
    """

    now_ms: int
    seconds: int
    looked_up_n: int
    is_cut: bool
    views: list[dict[str, Any]]


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


def candidates(asked: AskedOpenViews, beacons: Iterable[Read]) -> tuple[list[str], bool]:
    """Ids of the customer's views (of CMCD: sessions) to look up, and whether there are more.

    Those come first whose beacons have the texts that are looked for; then those with the newest beacons.
    """
    prefix = f"{asked.customer}:".encode()
    texts = [text.encode().lower() for text in (asked.viewer, asked.title) if text]
    newest: dict[bytes, int] = {}
    seen: dict[bytes, set[bytes]] = {}
    for record in beacons:
        if record.key is None or not record.key.startswith(prefix):
            continue
        newest[record.key] = max(record.appended_ms, newest.get(record.key, 0))
        if texts:
            value = record.value.lower()
            seen.setdefault(record.key, set()).update(text for text in texts if text in value)
    ranked = sorted(newest, key=lambda key: (-len(seen.get(key, ())), -newest[key]))
    found = [key.removeprefix(prefix).decode(errors="replace") for key in ranked[:LOOKED_UP_MAX]]
    return found, len(ranked) > LOOKED_UP_MAX


def row_of(answer: bytes) -> tuple[bool, dict[str, Any] | None]:
    """Whether a view is over, and its row while it is not; of an answer of the processor's lookups."""
    found = _ANSWER.decode(answer).found
    if found.state != "open" or found.row is None:
        return True, None
    row = _DEFAULTS | {name: value for name, value in found.row.items() if name != "events"}
    dimensions = {
        "customer": row.get("customer_id"),
        "viewer": row.get("viewer_user_id") or row.get("viewer_id"),
        "exit_before_start": row["ebvs"],
    }
    return False, row | dimensions | {f"custom.{name}": value for name, value in (row.get("custom") or {}).items()}


def matches(asked: AskedOpenViews, row: dict[str, Any]) -> bool:
    """Whether a row is what is looked for."""
    score = row.get("score_view")
    return (
        (not asked.viewer or row.get("viewer") == asked.viewer)
        and asked.title.lower() in (row.get("video_title") or "").lower()
        and (not asked.error or row.get("error_code") == asked.error)
        and (asked.score_below is None or (score is not None and score < asked.score_below))
    )
