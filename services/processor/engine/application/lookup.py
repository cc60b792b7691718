"""Lookup: a question over HTTP that is answered from the committed rows of one core."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from services.processor.engine.state.map_spec import MapSpec
from services.processor.engine.state.store_spec import Row, StoreSpec


class Rows(Protocol):
    """A core's committed rows, to be read only: what a lookup changed in place would be lost, or worse, kept."""

    def get(self, spec: StoreSpec[Row], key: bytes) -> Row | None:
        """The row of `key` in a store that the application declared, or None."""
        ...

    def items(
        self,
        spec: MapSpec[Row],
        owner: bytes,
        limit: int,
        *,
        prefix: bytes = b"",
        after: bytes | None = None,
        before: bytes | None = None,
    ) -> list[tuple[bytes, Row]]:
        """The first `limit` entries of an owner in a map that the application declared: as `RowMap.items`, of committed rows."""
        ...


class LookupWrong(ValueError):
    """The parts of the path name no key; the text says why."""


class Candidate(NamedTuple):
    """One meaning of a lookup's path."""

    #: The input key whose core has the rows.
    key: bytes
    #: What that core looks up: the key itself, or a value that the application derives from it.
    subject: bytes


class StoredObject(NamedTuple):
    """An object that media requests have stored: its name, its size, and the HTTP headers it is given out with."""

    name: str
    size_bytes: int
    headers: Mapping[str, str]


class Objects(NamedTuple):
    """What a found document names, in the order in which it is given out."""

    objects: list[StoredObject]
    #: Parameters that ask the same lookup for what comes after these.
    rest: Mapping[str, str] | None = None
    #: Whether it is just one, given out as it is; else they are the parts of one body.
    is_one: bool = False


@dataclass(frozen=True)
class Lookup:
    """A question over HTTP, `GET <path>`, that is answered from the rows of the core that has the key."""

    #: A pattern such as `/views/{customer}/{view}`.
    path: str
    #: What the parts of the path may mean, likeliest first. The first candidate that has an answer is answered; if none has one,
    #: there is no answer. Raises `LookupWrong`.
    candidates_of: Callable[[Mapping[str, str]], tuple[Candidate, ...]]
    #: The answer to a candidate's subject as JSON; None when there is nothing.
    answer: Callable[[Rows, bytes], bytes | None]
    #: Parameters of the query that are parts too, where they are given.
    parameters: frozenset[str] = frozenset()
    #: Whether the answer's body is the document alone, for programs that know its format. Its envelope is then in headers.
    is_document: bool = False
    #: Where the answer is not the document found but the stored objects that it names.
    objects_of: Callable[[bytes], Objects] | None = None
