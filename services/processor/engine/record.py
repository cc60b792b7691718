"""Record and Output: what flows into a core and out of it."""

import msgspec


class Record(msgspec.Struct, frozen=True, gc=False):
    """One Kafka record of an input partition. `timestamp_ms` is the broker's append time, ms since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    #: Of an application that takes its records `by_headers`; its values are None.
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Output(msgspec.Struct, frozen=True, gc=False):
    """One record to be produced in the transaction of the checkpoint that holds it."""

    topic: str
    key: bytes
    #: None: a tombstone.
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    #: Whether it goes to the partition of its key; else to the one of the core's number, counted round.
    by_key: bool = False
