"""The timeline of a view, packed as its row stores it: it is written with every change of the view, and read once, for its row.

As lists of numbers it is more than a third of an open view in memory, and of what storing the view costs.
"""

from typing import Final

import msgspec

#: No events: a MessagePack array without items.
NO_EVENTS: Final = msgspec.Raw(b"\x90")
#: The first byte of an array of 16 to 65,535 items, whose number follows in two bytes; of a smaller one it holds the number
#: (https://github.com/msgpack/msgpack/blob/master/spec.md, "array format family").
_ARRAY_16: Final = 0xDC
_FIX_ARRAY: Final = 0x90
_FIX_ARRAY_MAX: Final = 15
#: Client time, code, playhead and bitrate of an event.
_decode: Final = msgspec.msgpack.Decoder(list[tuple[int, int, int, int]]).decode


def count_of(timeline: msgspec.Raw) -> int:
    """How many events it has, at most 65,535."""
    packed = memoryview(timeline)
    return int.from_bytes(packed[1:3], "big") if packed[0] == _ARRAY_16 else packed[0] & _FIX_ARRAY_MAX


def with_event(timeline: msgspec.Raw, at_ms: int, code: int, playhead_ms: int, bitrate_bps: int) -> msgspec.Raw:
    """The timeline with one more event, in the same bytes as if all were packed together."""
    packed, count = memoryview(timeline), count_of(timeline) + 1
    header = bytes([_FIX_ARRAY | count]) if count <= _FIX_ARRAY_MAX else bytes([_ARRAY_16]) + count.to_bytes(2, "big")
    events = packed[3:] if packed[0] == _ARRAY_16 else packed[1:]
    return msgspec.Raw(b"".join((header, events, msgspec.msgpack.encode((at_ms, code, playhead_ms, bitrate_bps)))))


def events_of(timeline: msgspec.Raw) -> list[tuple[int, int, int, int]]:
    """Its events: client time (ms), code, playhead (ms) and bitrate (bps) of each."""
    return _decode(timeline)
