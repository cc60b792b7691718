"""Protocol buffers, writing only: messages as plain dicts by a table of their fields.

The wire format is the public one (protobuf.dev/programming-guides/encoding): each field is a key `number << 3 | wire type` and its
value; None and names without a field are omitted. A few hundred messages a second need no faster writer.
"""

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5
_INT32_MAX: Final = (1 << 31) - 1
_INT64_MAX: Final = (1 << 63) - 1
#: What an integer may be, by its type; what is beyond stays at the bound, since a reader would see another number.
_BOUNDS: Final = {
    "int32": (-_INT32_MAX - 1, _INT32_MAX),
    "int64": (-_INT64_MAX - 1, _INT64_MAX),
    "uint64": (0, _INT64_MAX),
}


class Field(NamedTuple):
    """One field of a message: its number, and its type by name or, for a message, the table of its fields.

    A list as its value makes it a repeated one.
    """

    number: int
    type: str | Mapping[str, "Field"]


Message = Mapping[str, Field]


class Encoder:
    """Encodes one kind of message."""

    def __init__(self, message: Message) -> None:
        self._message = message

    def encode(self, values: Mapping[str, Any]) -> bytes:
        """The message with these values by field name. Raises KeyError for a name that is no field."""
        return _message(self._message, values)


def _message(message: Message, values: Mapping[str, Any]) -> bytes:
    parts = []
    for name, value in values.items():
        field = message[name]
        if value is None:
            continue
        parts += [(field.number, _field(field, one)) for one in (value if isinstance(value, list) else [value])]
    # Readers take any order; one and the same makes equal messages equal bytes. Sorting keeps the order of a list.
    return b"".join(data for _, data in sorted(parts, key=lambda part: part[0]))


def _field(field: Field, value: Any) -> bytes:
    number, kind = field
    if not isinstance(kind, str):
        return _lengthy(number, _message(kind, value))
    if kind == "string":
        return _lengthy(number, str(value).encode())
    if kind == "bool":
        return _key(number, _VARINT) + _varint(bool(value))
    if kind == "double":
        return _key(number, _FIXED_64) + struct.pack("<d", value)
    if kind == "float":
        return _key(number, _FIXED_32) + struct.pack("<f", value)
    least, most = _BOUNDS[kind]
    return _key(number, _VARINT) + _varint(max(least, min(value, most)))


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _lengthy(number: int, data: bytes) -> bytes:
    return _key(number, _LENGTH) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as their two's complement of 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
