"""Earlier answers, kept as bytes: so their sum is known, and a tenth of what their objects take."""

import hashlib
import pickle
from collections import Counter, OrderedDict
from typing import Any, Final

#: What an entry takes besides its answer: its name in two tables.
_ENTRY_BYTES: Final = 500


class EarlierAnswers:
    """Answers of one version of the warehouse, at most `bytes_max` bytes; 0: none. Belongs to one event loop.

    Beyond that the oldest one goes of the caller that has the most: who asks much takes no place of others.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._version: int | None = None
        #: By caller; the one that was used last is last.
        self._kept: dict[str, OrderedDict[bytes, bytes]] = {}
        self._caller_of: dict[bytes, str] = {}
        self._bytes: Counter[str] = Counter()

    @property
    def size_bytes(self) -> int:
        """What all of them take."""
        return self._bytes.total()

    def find(self, name: bytes, version: int) -> Any:
        """The answer of this name; None where it is not kept."""
        if version != self._version or (caller := self._caller_of.get(name)) is None:
            return None
        self._kept[caller].move_to_end(name)
        return pickle.loads(self._kept[caller][name])  # noqa: S301 - bytes of `keep`

    def keep(self, name: bytes, version: int, caller: str, answer: object) -> None:
        """Keeps an answer. Those of another version go: nobody asks for them again."""
        if version != self._version:
            self._version = version
            self._kept.clear()
            self._caller_of.clear()
            self._bytes.clear()
        if name in self._caller_of:
            self._drop(name)
        data = pickle.dumps(answer)
        self._kept.setdefault(caller, OrderedDict())[name] = data
        self._caller_of[name] = caller
        self._bytes[caller] += len(data) + _ENTRY_BYTES
        while self.size_bytes > self._bytes_max:
            most, _ = self._bytes.most_common(1)[0]
            self._drop(next(iter(self._kept[most])))

    def _drop(self, name: bytes) -> None:
        caller = self._caller_of.pop(name)
        own = self._kept[caller]
        self._bytes[caller] -= len(own.pop(name)) + _ENTRY_BYTES
        if not own:
            del self._kept[caller], self._bytes[caller]


def name_of(*asked: object) -> bytes:
    """A name of what is asked and read: texts and numbers say all that they are, so no two have the same."""
    return hashlib.sha256(repr(asked).encode()).digest()
