"""The timeline of a view, packed as its row stores it. It is written with every change of the view, and read once, for its row.

An event as a list of numbers is five objects in memory, and each commit of the view encodes all events again.
"""

from typing import Final

import msgspec

from services.processor.applications.video_views.bounds import TIMELINE_EVENTS_MAX

#: No events: a MessagePack array without items.
NO_EVENTS: Final = msgspec.Raw(b"\x90")
#: How many events a timeline has at the most. No `Final`, which compiled code would hold as a number: tests give it more room.
events_max: int = TIMELINE_EVENTS_MAX
#: The first byte of an array of 16 to 65,535 items, whose number follows in two bytes; of a smaller one it holds the number
#: (https://github.com/msgpack/msgpack/blob/master/spec.md, "array format family").
_ARRAY_16: Final = 0xDC
_FIX_ARRAY: Final = 0x90
_FIX_ARRAY_MAX: Final = 15
_encode: Final = msgspec.msgpack.Encoder().encode
#: Client time, code, playhead and bitrate of an event.
_decode: Final = msgspec.msgpack.Decoder(list[tuple[int, int, int, int]]).decode


def with_event(timeline: msgspec.Raw, at_ms: int, code: int, playhead_ms: int, bitrate_bps: int) -> msgspec.Raw:
    """The timeline with one more event, in the same bytes as if all were packed together; at most `events_max`."""
    packed = memoryview(timeline)
    is_long = packed[0] == _ARRAY_16
    count = (packed[1] << 8 | packed[2] if is_long else packed[0] & _FIX_ARRAY_MAX) + 1
    if count > events_max:
        return timeline
    header = (_FIX_ARRAY | count,) if count <= _FIX_ARRAY_MAX else (_ARRAY_16, count >> 8, count & 0xFF)
    event = _encode((at_ms, code, playhead_ms, bitrate_bps))
    return msgspec.Raw(b"".join((bytes(header), packed[3 if is_long else 1 :], event)))


def without_first(timeline: msgspec.Raw, count: int) -> msgspec.Raw:
    """The timeline without its first `count` events."""
    return msgspec.Raw(_encode(_decode(timeline)[count:]))


def events_of(timeline: msgspec.Raw) -> list[tuple[int, int, int, int]]:
    """Its events: client time (ms), code, playhead (ms) and bitrate (bps) of each."""
    return _decode(timeline)
