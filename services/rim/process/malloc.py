"""The C library's allocator: few arenas, so that a thread can use memory that another thread freed."""

import ctypes

#: `M_ARENA_MAX` of glibc's malloc.h.
_ARENA_MAX = -8
ARENAS_MAX = 2


def share_arenas() -> None:
    """Limits glibc's malloc to `ARENAS_MAX` arenas. Call it before threads begin; another C library is left as it is.

    By default there are eight a CPU. With hundreds of threads of Kafka's client and of RocksDB each arena grows to its own
    highest need and keeps it, though little of it is in use.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, ARENAS_MAX)
