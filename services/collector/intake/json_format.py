"""Common to the JSON formats: reading and rejecting a body, and the JSON Schema of Playhead's own formats.

A script that crops a text may cut a character in half (JavaScript: `title.slice(0, 100)`), and then writes `\\ud83d` alone. This is
not a character in any encoding. It is read as "?", so that half a character does not reject a batch.
"""

import re
from typing import Any, Final, TypeVar

import msgspec
import orjson

from services.collector.intake.post import InvalidInput, Rules
from shared.codec import NO_JSON

T = TypeVar("T")

#: Bodies of so many bytes are not counted: they cannot hold much.
ITEMS_FREE_BYTES: Final = 8 * 1024
_NUMBER_CHARS_MAX: Final = 40
#: Escapes of one document that are looked at for halves of characters.
ESCAPES_MAX: Final = 16_384
#: Escapes that may be halves of characters, and what is no such escape although it looks like one: a backslash, a whole pair.
_ESCAPES: Final = re.compile(
    rb"(?P<whole>\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
#: A number of JSON that is not written as an integer (RFC 8259, 6).
_WITH_FRACTION: Final = re.compile(rb"-?\d+(\.\d+([eE][+-]?\d+)?|[eE][+-]?\d+)")
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def check_items(body: bytes, rules: Rules, per_item: int = 1) -> None:
    """Raises `InvalidInput` when the document may hold more than `per_item * rules.body_items_max` values. It is not parsed.

    Every value follows a comma or opens a list or an object; an object takes more memory and counts twice. Characters of
    strings count too, so the bound is far above what clients send.
    """
    if len(body) <= max(ITEMS_FREE_BYTES, per_item * rules.body_items_max // 2):
        return
    items = body.count(b",") + body.count(b"[") + 2 * body.count(b"{")
    if items > per_item * rules.body_items_max:
        raise InvalidInput(
            "too_large", f"the body may hold {items} values; {per_item * rules.body_items_max} are the most"
        )


def decoded(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw, what: str) -> T:
    """`raw` as the decoder's type. Raises `InvalidInput`; `what` names for the client what was expected."""
    try:
        return decoder.decode(raw)
    except NO_JSON as error:
        invalid = _invalid(error, what)
    text = bytes(raw)
    for mended in (with_whole_characters, _with_plain_integers):
        before, text = text, mended(text)
        if text is before:
            continue
        try:
            return decoder.decode(text)
        except NO_JSON as error:
            invalid = _invalid(error, what)
    raise invalid


def parsed(body: bytes) -> Any:
    """The JSON value that `body` is; raises `InvalidInput`."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            return orjson.loads(with_whole_characters(body))
        except orjson.JSONDecodeError as error:
            raise _invalid(error, "body") from error


def _invalid(error: Exception, what: str) -> InvalidInput:
    if isinstance(error, msgspec.ValidationError):
        return InvalidInput("invalid", str(error))
    return InvalidInput("undecodable", f"the {what} is not JSON: {error}")


def with_whole_characters(text: bytes) -> bytes:
    """The document with "?" for every half of a character; as it is where it has none, or more escapes than are looked at."""
    if b"\\ud" not in text and b"\\uD" not in text:
        return text
    if text.count(b"\\u") + text.count(b"\\\\") > ESCAPES_MAX:
        return text
    return _ESCAPES.sub(_whole_character, text)


def _whole_character(escape: re.Match[bytes]) -> bytes:
    return escape.group() if escape["whole"] else b"?"


def _with_plain_integers(text: bytes) -> bytes:
    """The object with those of its numbers as `5` that were written `5.0` or `5e0`; as it is where it is no object.

    To JSON Schema these are integers too (2020-12, "Validation", 6.1.1), and some languages write every number so.
    """
    try:
        fields = _fields.decode(text)
    except NO_JSON:
        return text
    plain = {name: integer for name, value in fields.items() if (integer := _plain(bytes(value))) is not None}
    return msgspec.json.encode(fields | plain) if plain else text


def _plain(value: bytes) -> msgspec.Raw | None:
    if len(value) > _NUMBER_CHARS_MAX or not _WITH_FRACTION.fullmatch(value):
        return None
    number = float(value)
    return msgspec.Raw(str(int(number)).encode()) if number.is_integer() else None


def schema_of(title: str, one: type, batch: object) -> bytes:
    """The JSON Schema (2020-12) of a body that is either `one` or a `batch`."""
    both, components = msgspec.json.schema_components([one, batch], ref_template="#/$defs/{name}")
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "oneOf": both,
        "$defs": components,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)
