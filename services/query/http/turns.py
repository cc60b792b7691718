"""How many questions a caller has under way."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from services.query.scope import Caller


class TooManyQuestions(RuntimeError):
    """The caller has as many questions under way as one may."""


class Turns:
    """Counts the questions of each caller."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def of(self, caller: Caller) -> Iterator[None]:
        """A turn while the block runs; raises `TooManyQuestions`."""
        if self._under_way[caller.name] >= self._most:
            raise TooManyQuestions
        self._under_way[caller.name] += 1
        try:
            yield
        finally:
            self._under_way[caller.name] -= 1
            if not self._under_way[caller.name]:
                del self._under_way[caller.name]
