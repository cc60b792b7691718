"""Views of which this process has seen a beacon lately, so that new ones can be counted. Pure, bounded."""

from collections.abc import Iterable
from typing import Final

#: Of each of two generations: more than one process has players at a time.
REMEMBERED_MAX: Final = 131_072


class KnownViews:
    """Two generations of views, as hashes. A view that is seen again moves to the younger one; the elder one is dropped whole."""

    def __init__(self, remembered_max: int = REMEMBERED_MAX) -> None:
        self._max = remembered_max
        self._young: set[int] = set()
        self._old: set[int] = set()

    def unknown(self, views: Iterable[tuple[str, str]]) -> set[int]:
        """The hashes of those views (customer id, view id) that are not known."""
        found = set()
        for view in views:
            # Python's hash of a text has a secret key: a client cannot make two views collide.
            key = hash(view)
            if key in self._young:
                continue
            if key in self._old:
                self.remember((key,))
            else:
                found.add(key)
        return found

    def remember(self, keys: Iterable[int]) -> None:
        """Makes views known by their hashes."""
        for key in keys:
            if len(self._young) >= self._max:
                self._young, self._old = set(), self._young
            self._young.add(key)
