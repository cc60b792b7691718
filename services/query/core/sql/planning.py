"""Chooses who answers a question, and lays out what is read of the warehouse. Pure."""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, Protocol

from services.query.core.question import Question
from services.query.core.sql import sums
from services.query.core.sql.relation import Scan

Way = Literal["sums", "views"]


class FileLike(Protocol):
    """One file of the warehouse."""

    @property
    def path(self) -> str:
        """Where it is."""

    @property
    def rows(self) -> int:
        """How many it has."""

    @property
    def first_hour(self) -> int | None:
        """The bound of its hours from below."""

    @property
    def last_hour(self) -> int | None:
        """… and from above."""


def way(question: Question) -> Way:
    """Sums where they answer exactly: they cost a few rows an hour. Else views."""
    return "sums" if sums.suffice(question) else "views"


def scans(
    files: Sequence[FileLike],
    *,
    removed_from: Collection[str],
    owned_hours: Collection[int],
    moved_before: int | None,
) -> list[Scan]:
    """The files, in as few scans as what must be left out allows: most need no look at each row.

    `removed_from` are files of which rows are deleted, `owned_hours` hours of which Postgres owns a slice. Views that count before
    hour `moved_before` may count elsewhere meanwhile; None: none has moved.
    """
    groups: dict[tuple[bool, bool, bool], list[str]] = {}
    for file in files:
        is_moved = moved_before is not None and (file.first_hour is None or file.first_hour < moved_before)
        kind = (file.path in removed_from, _touches(file, owned_hours), is_moved)
        groups.setdefault(kind, []).append(file.path)
    return [
        Scan(tuple(paths), has_removed=removed, has_owned=owned, has_moved=moved)
        for (removed, owned, moved), paths in sorted(groups.items())
    ]


def _touches(file: FileLike, hours: Iterable[int]) -> bool:
    if file.first_hour is None or file.last_hour is None:
        return bool(list(hours))
    return any(file.first_hour <= hour <= file.last_hour for hour in hours)
