"""When the settled beacons of a view were sent: by few spans of their numbers, for views of a session.

Numbers begin again with each run of a session. So a beacon whose number is settled is a copy only if it was sent when that
number was. Times are the client's, with the shift of its clock (`step.shift_ms`), ms.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

#: Spans of one view. Beyond it two neighbours become one.
SPANS_MAX: Final = 16
#: Numbers of a span, until neighbours become one.
_WIDTH_MIN: Final = 8


class Span(msgspec.Struct, array_like=True, gc=False):
    """Settled numbers that follow each other: from `first_seq` up to `until_seq`, sent from `from_ms` to `to_ms`."""

    first_seq: int
    until_seq: int
    from_ms: int
    to_ms: int

    def has(self, seq: int) -> bool:
        """Whether the number is one of these."""
        return self.first_seq <= seq < self.until_seq


def note_sent(spans: list[Span], seq: int, at_ms: int) -> None:
    """Notes when the next settled number was sent."""
    last = spans[-1] if spans else None
    width = max(_WIDTH_MIN, spans[0].until_seq - spans[0].first_seq) if spans else 0
    if last is not None and seq - last.first_seq < width:
        spans[-1] = Span(last.first_seq, seq + 1, min(last.from_ms, at_ms), max(last.to_ms, at_ms))
        return
    spans.append(Span(seq, seq + 1, at_ms, at_ms))
    if len(spans) > SPANS_MAX:
        pairs = zip(spans[:-1:2], spans[1::2], strict=False)
        spans[: len(spans) // 2 * 2] = [
            Span(one.first_seq, two.until_seq, min(one.from_ms, two.from_ms), max(one.to_ms, two.to_ms))
            for one, two in pairs
        ]


def may_be_sent(spans: list[Span], seq: int, at_ms: int, shifts_ms: Iterable[int], *, slack_ms: int = 0) -> bool:
    """Whether the beacon of this number may have been sent then, by a clock with one of these shifts, or about then.

    True of a number that is in no span.
    """
    span = next((one for one in spans if one.has(seq)), None)
    if span is None:
        return True
    return any(span.from_ms - slack_ms <= at_ms + shift_ms <= span.to_ms + slack_ms for shift_ms in shifts_ms)
