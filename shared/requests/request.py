"""One request of a player for media, the same for every client."""

from typing import Final

import msgspec

#: How a request went.
COMPLETED: Final = 1
FAILED: Final = 2
CANCELED: Final = 3

#: No request takes longer, ms, for the order of beacons; without its end, no first byte comes later.
REQUEST_MS_MAX: Final = 600_000
#: No more time of one request counts, ms, also where a client's clock says more.
COUNTED_MS_MAX: Final = 86_400_000


class Request(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One request of the player for media. Times in ms on any one clock; None is unknown, or unchanged in a delta."""

    outcome: int
    start_ms: int | None = None
    first_byte_ms: int | None = None
    end_ms: int | None = None
    size_bytes: int | None = None
    #: Whether what is None is as in the request before (mux sends only what changed).
    is_delta: bool = False
