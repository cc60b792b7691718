"""Room that parties share for what is kept: who keeps much takes no place of others."""

from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Kept(NamedTuple, Generic[V]):
    party: str
    member: str
    value: V
    size: int


class FairRoom(Generic[K, V]):
    """Things by name, of sizes that are at most `size_max` together; 0: none.

    Beyond that one goes of the party that has the most, of its member with the most: the one that was used longest ago.
    """

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._kept: dict[K, _Kept[V]] = {}
        #: The names by party and member; the one that was used last is last.
        self._names: dict[tuple[str, str], OrderedDict[K, None]] = {}
        self._size_of: Counter[str] = Counter()
        self._size_by: dict[str, Counter[str]] = {}

    @property
    def size(self) -> int:
        """That of all together."""
        return self._size_of.total()

    def find(self, name: K) -> V | None:
        """What is kept under this name."""
        one = self._kept.get(name)
        if one is None:
            return None
        self._names[one.party, one.member].move_to_end(name)
        return one.value

    def keep(self, name: K, value: V, *, party: str, member: str = "", size: int = 1) -> None:
        """Keeps it for the party's member, in place of what had the name."""
        if name in self._kept:
            self._drop(name)
        self._kept[name] = _Kept(party, member, value, size)
        self._names.setdefault((party, member), OrderedDict())[name] = None
        self._size_of[party] += size
        self._size_by.setdefault(party, Counter())[member] += size
        while self.size > self._size_max:
            most, _ = self._size_of.most_common(1)[0]
            its_most, _ = self._size_by[most].most_common(1)[0]
            self._drop(next(iter(self._names[most, its_most])))

    def clear(self) -> None:
        """Keeps nothing any more."""
        for kept in (self._kept, self._names, self._size_of, self._size_by):
            kept.clear()

    def _drop(self, name: K) -> None:
        one = self._kept.pop(name)
        self._size_of[one.party] -= one.size
        self._size_by[one.party][one.member] -= one.size
        own = self._names[one.party, one.member]
        del own[name]
        if not own:
            del self._names[one.party, one.member], self._size_by[one.party][one.member]
        if not self._size_by[one.party]:
            del self._size_by[one.party], self._size_of[one.party]
