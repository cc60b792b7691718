"""Media requests: an application asks the runtime to join the values of input records and to store them as one object.

The work runs outside the folding thread. The state holds where the bytes are, never the bytes. A request is a row of the
application's media store, so it is part of a checkpoint and a takeover finds it again. The runtime reads the records, verifies
them, stores the object, and reports the outcome to the core, which calls the application. So an object is stored before the
checkpoint that records it is committed. A crash in between stores the object again, under the same name and with the same bytes.
Therefore name and content must depend on the input alone.
"""

import hashlib
from typing import Final, Literal, Protocol, runtime_checkable

import msgspec

#: A run of records of one input partition: the first offset, and how many there are.
Run = tuple[int, int]

#: `stored`: the object is there, verified. `gone`: Kafka has not all of the records any more. `corrupt`: their bytes are not
#: what was announced. `refused`: the store has answered for long that it does not take the object. Then the core writes the
#: origins of its records to topic `rejected`, so that they can be produced to the input again. Only `stored` stores anything.
MediaOutcome = Literal["stored", "gone", "corrupt", "refused"]


class MediaRequest(msgspec.Struct, frozen=True, array_like=True):
    """One object to be stored: the values of these records of an input, one after the other."""

    #: Where the object goes: parts of letters, digits, `_`, `-` and `.`, with `/` between them.
    name: str
    topic: str
    #: In the order of the object's bytes.
    runs: tuple[Run, ...]
    size_bytes: int
    #: SHA-256 of the whole.
    sha256: bytes


@runtime_checkable
class MediaHandler(Protocol):
    """A processor that makes media requests."""

    def media_done(self, key: bytes, request: MediaRequest, outcome: MediaOutcome) -> None:
        """The request under `key` is done and its row is deleted: another may be made under the same key."""
        ...


class Corrupt(ValueError):
    """The bytes are not those of the request."""


class Verifying:
    """Holds the bytes of a request, as they are read, against what was announced."""

    def __init__(self, request: MediaRequest) -> None:
        self._request = request
        self._hash: Final = hashlib.sha256()
        self._bytes = 0

    def add(self, value: bytes) -> None:
        """The next record's value. Raises `Corrupt` when there are more bytes than announced."""
        self._bytes += len(value)
        if self._bytes > self._request.size_bytes:
            raise Corrupt(f"more than the {self._request.size_bytes} bytes announced")
        self._hash.update(value)

    def end(self) -> None:
        """There are no more. Raises `Corrupt`."""
        if self._bytes != self._request.size_bytes:
            raise Corrupt(f"{self._bytes} bytes, {self._request.size_bytes} were announced")
        if self._hash.digest() != self._request.sha256:
            raise Corrupt(f"SHA-256 is {self._hash.hexdigest()}, {self._request.sha256.hex()} was announced")
