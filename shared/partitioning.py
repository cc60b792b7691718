"""Maps a key to its partition: murmur2 as in the Java client, for every producer and every lookup.

Source of the algorithm: MurmurHash2 (32 bit, seed 0x9747b28c) as in Apache Kafka's `Utils.murmur2`; the partition is
`(hash & 0x7fffffff) % partitions` as in its `BuiltInPartitioner`. The number of partitions of a topic changes only as
docs/growing.md says. It is multiplied, so that each key stays or moves to a new partition.
"""

from functools import lru_cache
from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF

#: A view sends a beacon every few seconds, so its key comes back: remembering it makes the hash free.
KEYS_REMEMBERED_MAX: Final = 65_536


def murmur2(data: bytes) -> int:
    """The unsigned 32-bit murmur2 hash of `data`."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK
        k ^= k >> 24
        h = (h * _M & _MASK) ^ (k * _M & _MASK)
    tail = length - whole
    if tail:
        h ^= int.from_bytes(data[whole:], "little")
        h = h * _M & _MASK
    h ^= h >> 13
    h = h * _M & _MASK
    return h ^ (h >> 15)


@lru_cache(maxsize=KEYS_REMEMBERED_MAX)
def partition_of(key: bytes, partitions: int) -> int:
    """The partition (0-based) of `key` in a topic of `partitions` partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def view_key(customer_id: str, view_id: str) -> bytes:
    """The key of a view and of everything derived from it: `<customer>:<view id>`.

    A customer id matches `[A-Za-z0-9_-]{1,64}` (see `shared.schemas.beacon.CUSTOMER_ID`), so no two pairs collide.
    """
    return f"{customer_id}:{view_id}".encode()


def trace_key(customer_id: str, trace_id: str) -> bytes:
    """The key of a trace and of all its spans: `<customer>:<trace id>`."""
    return f"{customer_id}:{trace_id}".encode()


def api_key(customer_id: str, host: str) -> bytes:
    """The key of an API and of all calls of it: `<customer>:<host>`."""
    return f"{customer_id}:{host}".encode()


def recording_key(customer_id: str, session_id: str) -> bytes:
    """The key of a session recording and of all chunks of it: `<customer>:<session id>`."""
    return f"{customer_id}:{session_id}".encode()
