"""One payload of a session recording, or the reason of its absence. The value of topic `recording_index`.

A session is a sequence of payloads, numbered by its client from 0. Of the rows with the same number, the one with the largest
revision is valid.
"""

import re
from typing import Final, Literal

import msgspec

SCHEMA_VERSION: Final = 1

#: The allowed session ids: they are part of object names.
SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
SEQUENCE_MAX: Final = 999_999
SEQUENCE_DIGITS_MAX: Final = len(str(SEQUENCE_MAX))

#: `stored`: the object is there. `missing`: did not come while it was waited for. `lost`: Kafka had dropped it before it was
#: stored. `corrupt`: its bytes are not what the collector took in. `refused`: the object store does not take it. Of the last four a
#: repetition is still taken.
RecordingState = Literal["stored", "missing", "lost", "corrupt", "refused"]


class RecordingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One payload; of state `missing` all from `sequence` to `sequence_last`."""

    schema_version: int
    customer_id: str
    session_id: str
    sequence: int
    sequence_last: int
    state: RecordingState
    #: Counts the rows of the session.
    revision: int
    #: When its last chunk was appended, or the absence noticed, ms since 1970.
    at_ms: int
    size_bytes: int = 0
    #: Of the whole payload, hexadecimal.
    sha256: str = ""
    content_type: str = ""
    content_encoding: str = ""
    chunks: int = 0
    #: The object's name in the store.
    object: str = ""


class StoredPayload(msgspec.Struct, frozen=True, array_like=True):
    """One stored payload, as a lookup returns it."""

    sequence: int
    size_bytes: int
    sha256: str
    content_type: str
    content_encoding: str
    object: str


class RecordingIndex(msgspec.Struct, frozen=True):
    """What of a session is stored, in order: the answer of the lookup."""

    customer_id: str
    session_id: str
    payloads: list[StoredPayload]
    #: Numbers that were given up: first and last of each range.
    absent: list[tuple[int, int]]
    #: Whole payloads that wait for one before them, and the number that is being stored.
    waiting: int
    working: int | None
    #: Where the rest of the list begins; null where this is the end of it.
    next: int | None
