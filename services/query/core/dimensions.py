"""The dimensions by which views can be broken down and filtered: each once, as an expression over a view's fields. Pure data.

Every value is a text or null (unknown). Texts are cut as in rollups and hot rows: so a value is the same wherever it is read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from services.query.core.parts import VIEWER
from shared.measures import DIMENSIONS as OF_ROLLUPS
from shared.measures import MEMBER_CHARACTERS_MAX

CUSTOM: Final = "custom."
_CUSTOM_NAME: Final = re.compile(r"[^\x00-\x1f]{1,100}")
CUSTOMER: Final = "customer"
#: The one that tells viewers apart: a question that names it is no longer one about many views.
VIEWER_ID: Final = "viewer"


@dataclass(frozen=True)
class Dimension:
    """One dimension."""

    name: str
    title: str
    #: Empty for a custom one: a statement gives its key a column.
    sql: str
    fields: tuple[str, ...]
    kind: Literal["text", "number", "flag"] = "text"
    #: Of a custom dimension, the key in the view's map.
    key: str | None = None
    #: The column that holds `sql` wherever the value is short: a filter on it skips what cannot match.
    column: str | None = None


def _text(name: str, title: str) -> Dimension:
    return Dimension(name, title, normal(name), (name,), column=name)


def _flag(name: str, title: str, field: str | None = None) -> Dimension:
    field = field or name
    return Dimension(name, title, f"CASE {field} WHEN true THEN 'true' WHEN false THEN 'false' END", (field,), "flag")


def normal(text: str) -> str:
    """A text as Postgres holds it: cut, and without a zero character. Most need neither."""
    short = f"CASE WHEN strlen({text}) <= {MEMBER_CHARACTERS_MAX} THEN {text} ELSE left({text}, {MEMBER_CHARACTERS_MAX}) END"
    return f"replace({short}, chr(0), chr(65533))"


def normal_text(text: str) -> str:
    """What `normal` makes of this text."""
    return text[:MEMBER_CHARACTERS_MAX].replace("\0", "\ufffd")


_TITLES: Final = {
    "country": "country",
    "device": "device",
    "os": "operating system",
    "browser": "browser",
    "player_name": "player",
    "cdn": "CDN",
    "stream_type": "live or on demand",
    "video_id": "video",
    "experiment": "experiment",
    "source": "client that reports",
    "video_title": "video title",
    "video_series": "series",
    "player_software": "player software",
    "player_version": "player version",
    "connection": "connection",
    "region": "region",
    "city": "city",
    "source_host": "host of the source",
    "sub_property": "sub-property",
    "end_reason": "why the view ended",
    "error_code": "error code",
    "error_severity": "error severity",
    "startup_unknown": "why the start-up time is unknown",
    "preload": "preload",
}
_FLAGS: Final = (
    _flag("is_bot", "bot"),
    _flag("autoplay", "autoplay"),
    _flag("complete", "complete view"),
    _flag("signed", "signed by the customer"),
    _flag("startup_failed", "start-up failed"),
    _flag("playback_failed", "playback failed"),
    _flag("exit_before_start", "exit before start", "ebvs"),
    _flag("view_dropped", "view dropped"),
    _flag("business_exception", "business exception"),
    _flag("spi_good", "good experience"),
)
_ALL: Final = (
    Dimension(CUSTOMER, "customer", "customer_id", ("customer_id",), column="customer_id"),
    *(_text(name, title) for name, title in _TITLES.items()),
    Dimension("asn", "network (ASN)", "CAST(asn AS varchar)", ("asn",), "number"),
    Dimension(VIEWER_ID, "viewer", normal(VIEWER), ("viewer_user_id", "viewer_id")),
    *_FLAGS,
)
#: Every dimension that has a name of its own. `custom.<name>` are those of a customer.
DIMENSIONS: Final[Mapping[str, Dimension]] = {one.name: one for one in _ALL}
assert set(OF_ROLLUPS) <= set(DIMENSIONS)


def value_of(one: Dimension, row: Mapping[str, Any]) -> str | None:
    """The value that a view's row has of a dimension, as `sql` says it of stored rows; None where it is unknown."""
    if one.key is not None:
        value = (row.get("custom") or {}).get(one.key)
    else:
        value = next((row[field] for field in one.fields if row.get(field) is not None), None)
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return normal_text(str(value))


def dimension(name: str) -> Dimension | None:
    """The dimension of this name; None where there is none."""
    if not name.startswith(CUSTOM):
        return DIMENSIONS.get(name)
    key = name.removeprefix(CUSTOM)
    if not _CUSTOM_NAME.fullmatch(key):
        return None
    return Dimension(name, key, "", (), key=key)
