"""Earlier answers, kept as bytes: so their sum is known, and a tenth of what their objects take."""

import hashlib
import pickle
from typing import Any, Final

from services.rim.turns.fair_room import FairRoom

#: What an entry takes besides its answer: its name in two tables.
_ENTRY_BYTES: Final = 500


class EarlierAnswers:
    """Answers of one version of the warehouse, at most `bytes_max` bytes; 0: none. Belongs to one event loop.

    Organisations share that room, and the callers of each its part of it.
    """

    def __init__(self, bytes_max: int) -> None:
        self._version: int | None = None
        self._kept: FairRoom[bytes, bytes] = FairRoom(bytes_max)

    @property
    def size_bytes(self) -> int:
        """What all of them take."""
        return self._kept.size

    def find(self, name: bytes, version: int) -> Any:
        """The answer of this name; None where it is not kept."""
        if version != self._version or (data := self._kept.find(name)) is None:
            return None
        return pickle.loads(data)  # noqa: S301 - bytes of `keep`

    def keep(self, name: bytes, version: int, asker: tuple[str, str], answer: object) -> None:
        """Keeps an answer for an organisation and its caller. Those of another version go: nobody asks for them again."""
        if version != self._version:
            self._version = version
            self._kept.clear()
        data = pickle.dumps(answer)
        organisation, caller = asker
        self._kept.keep(name, data, party=organisation, member=caller, size=len(data) + _ENTRY_BYTES)


def name_of(*asked: object) -> bytes:
    """A name of what is asked and read: texts and numbers say all that they are, so no two have the same."""
    return hashlib.sha256(repr(asked).encode()).digest()
