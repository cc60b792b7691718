"""What the JSON formats share: how a body is refused, and the JSON Schema of a format of our own."""

from typing import TypeVar

import msgspec

from services.collector.intake.post import Refused

T = TypeVar("T")


def decoded(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw, what: str) -> T:
    """`raw` as the decoder's type. Raises `Refused`; `what` is what the client is told it should be."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise Refused("invalid", str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused("undecodable", f"the {what} is not JSON: {error}") from error


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
