"""The keys under which views are stored: that of their records, and of a session's later plays that key and a number."""

from typing import Final

#: Stands between a session's key and a play's ordinal; no view id of a client holds it: the collector and the fold refuse it.
SEPARATOR: Final = b"\x00"


def play_key(session_key: bytes, ordinal: int) -> bytes:
    """The store key of a session's play: the session's own for the first."""
    return session_key if ordinal <= 1 else session_key + SEPARATOR + str(ordinal).encode()


def session_key(key: bytes) -> bytes:
    """The key of the records that the view under this store key is made of."""
    return key.partition(SEPARATOR)[0]
