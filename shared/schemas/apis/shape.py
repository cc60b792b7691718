"""The shape of JSON values: the schema that is learned from values. It does not hold the values.

A shape of one value and one of a million are of the same kind; `services.processor.applications.api_schemas.shape` merges them.
"""

from typing import Literal

import msgspec

JsonType = Literal["null", "boolean", "integer", "number", "string", "array", "object"]


class Text(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of strings at one place."""

    length_min: int
    length_max: int
    #: Formats of JSON Schema that strings had; "" means no format.
    formats: list[str] = []
    #: How often words came that may be those of an enumeration, by a hash; none any more once `is_free`.
    words: dict[str, int] = {}
    #: What such words are, by their hash.
    spelled: dict[str, str] = {}
    #: Whether there were strings that are no word of an enumeration, or too many words for one.
    is_free: bool = False


class Shape(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of the values at one place. Times are ms since 1970."""

    count: int
    first_ms: int
    last_ms: int
    types: list[JsonType]
    text: Text | None = None
    #: The least and the largest number; not of what is likely personal.
    low: float | None = None
    high: float | None = None
    items: "Shape | None" = None
    #: Of objects, by name; for a name that some of them lack see `optional`.
    fields: dict[str, "Shape"] = {}
    #: Names of fields that at least one object lacked.
    optional: list[str] = []
    #: The values of objects that are maps: their keys are data, not names.
    values: "Shape | None" = None
    is_map: bool = False
    #: Kinds of personal data that this likely is.
    personal: list[str] = []
