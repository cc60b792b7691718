"""A record of topic `views` as a row of table `serving.views`. Pure."""

from collections.abc import Iterable
from typing import Any, Final, Literal

from services.rim.database.view_rows import COLUMNS, TEXTS, VIEW_ID_BYTES_MAX, as_text
from shared.codec import VIEW, Undecodable
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.view import View

Reason = Literal["undecodable", "invalid"]
Row = tuple[Any, ...]

_FIELDS: Final = COLUMNS[:-1]
_CUSTOMER, _VIEW, _DAY, _GENERATION, _REVISION = (
    COLUMNS.index(name) for name in ("customer_id", "view_id", "day", "generation", "revision")
)


def row_of(value: bytes | None) -> Row | Reason:
    """The row of `COLUMNS`, or why there is none. What the finalizer stores in table `unparsed` has none."""
    if value is None:
        return "undecodable"
    try:
        view = VIEW.decode(value)
        document = value.decode()
    except (Undecodable, UnicodeDecodeError):
        return "undecodable"
    if not _is_valid(view):
        return "invalid"
    return (*(_column(view, name) for name in _FIELDS), document)


def newest(rows: Iterable[Row]) -> list[Row]:
    """The row of each view and day with the largest (generation, revision); of equal ones the last."""
    latest: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = (row[_CUSTOMER], row[_VIEW], row[_DAY])
        known = latest.get(key)
        if known is None or (row[_GENERATION], row[_REVISION]) >= (known[_GENERATION], known[_REVISION]):
            latest[key] = row
    return list(latest.values())


def _is_valid(view: View) -> bool:
    is_named = CUSTOMER_ID.fullmatch(view.customer_id) and "\0" not in view.view_id
    return bool(is_named) and len(view.view_id.encode()) <= VIEW_ID_BYTES_MAX


def _column(view: View, name: str) -> Any:
    value = getattr(view, name)
    return as_text(name, value) if name in TEXTS and value is not None else value
