"""What the JSON formats share: how a body is refused, and the JSON Schema of a format of our own."""

import contextlib
import re
from typing import Final, TypeVar

import msgspec

from services.collector.intake.post import Refused

T = TypeVar("T")

_NUMBER_CHARS_MAX: Final = 40
#: A number of JSON that is not written as an integer (RFC 8259, 6).
_WITH_FRACTION: Final = re.compile(rb"-?\d+(\.\d+([eE][+-]?\d+)?|[eE][+-]?\d+)")
#: A `ValidationError` is a `DecodeError` too.
_NO_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decoded(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw, what: str) -> T:
    """`raw` as the decoder's type. Raises `Refused`; `what` is what the client is told it should be."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        refused = Refused("invalid", str(error))
    except _NO_JSON as error:
        raise Refused("undecodable", f"the {what} is not JSON: {error}") from error
    with contextlib.suppress(*_NO_JSON):
        plain = _with_plain_integers(raw)
        if plain is not None:
            return decoder.decode(plain)
    raise refused


def _with_plain_integers(raw: bytes | msgspec.Raw) -> bytes | None:
    """The object with those of its numbers as `5` that were written `5.0` or `5e0`; None where it has none.

    To JSON Schema these are integers too (2020-12, "Validation", 6.1.1), and some languages write every number so.
    """
    fields = _fields.decode(raw)
    plain = {name: integer for name, value in fields.items() if (integer := _plain(bytes(value))) is not None}
    return msgspec.json.encode(fields | plain) if plain else None


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
