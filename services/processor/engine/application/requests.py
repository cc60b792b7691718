"""Requests: what an application answers over HTTP in addition to its lookups, as steps that the runtime executes.

A handler is a generator: it yields the next step, receives the step's result, and returns the reply. So it knows no client, loop or
owner, and a test can execute the steps in memory. Every step except `Submit` concerns one partition; its owner answers from
committed rows only. If a step cannot be done in time, the request ends and the runtime sends the answer.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from services.processor.engine.state.map_spec import MapSpec
from services.processor.engine.state.store_spec import Row, StoreSpec
from shared.topics import Topic


class CommittedRows(Protocol):
    """The committed rows of a core, to be read only."""

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

    def page(self, spec: StoreSpec[Row], after: bytes, limit: int) -> list[tuple[bytes, Row]]:
        """The first `limit` rows, in the order of their keys, whose key is greater than `after`."""
        ...


@dataclass(frozen=True)
class Query:
    """A question with a name, answered from the committed rows of one core: None where there is nothing (yet)."""

    name: str
    answer: Callable[[CommittedRows, bytes], bytes | None]


class Ask(NamedTuple):
    """Step: what the owner of `partition` says now. Sends bytes or None."""

    query: Query
    partition: int
    subject: bytes


class Await(NamedTuple):
    """Step: what the owner of `partition` says as soon as it is not None. Sends bytes."""

    query: Query
    partition: int
    subject: bytes


class Submit(NamedTuple):
    """Step: a record of an input, by its key, on all in-sync replicas. Sends None; the owner has not folded it yet."""

    topic: Topic
    key: bytes
    value: bytes


Step = Ask | Await | Submit


class Request(NamedTuple):
    """A request as a handler sees it."""

    method: str
    #: The parts of the path that its pattern names.
    parts: Mapping[str, str]
    query: Mapping[str, str]
    #: By lower-case name.
    headers: Mapping[str, str]
    body: bytes
    #: A random text of 32 hexadecimal digits, of this request alone.
    nonce: str
    #: How many partitions the application has.
    partitions: int


class Reply(NamedTuple):
    """The answer to a request; `body` is JSON unless the headers say otherwise."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


Handling = Generator[Step, Any, Reply]


@dataclass(frozen=True)
class Route:
    """One method of one path, a pattern such as `/users/{id}`."""

    method: str
    path: str
    handle: Callable[[Request], Handling]
