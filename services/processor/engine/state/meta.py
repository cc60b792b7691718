"""The meta row: where a core is, stored beside the rows of applications."""

from typing import Any, Final

import msgspec

from services.processor.engine.state.rows import ROW_FORMAT, check_format

#: The key of the meta row; no store has the id 0.
META_KEY: Final = b"\x00meta"


class Meta(msgspec.Struct, frozen=True, array_like=True):
    """A core's position: the last row of every commit, and the start of a takeover."""

    #: The next offset to read, by input topic.
    next_offsets: dict[str, int]
    clock_ms: int
    commit_number: int
    format: int = ROW_FORMAT
    #: By store id, the highest format in which a row was ever committed: a rollback too far is refused at the takeover.
    store_formats: dict[int, int] = {}
    #: Keys on which the application failed lately, by their digest: how often, and where last. Where is the sum of the next
    #: offsets, as in `version_at`.
    failing: dict[bytes, tuple[int, int]] = {}
    #: Number of existing rows, by store id.
    rows: dict[int, int] = {}
    #: The numbers that the application keeps, by name.
    tallies: dict[str, int] = {}
    #: The version of the application that wrote this, and where it began; None for the first version.
    version: str = ""
    version_at: int | None = None
    #: The ids of the topics that it was folded from and of its changelog, by name, as the runtime gave them.
    topic_ids: dict[str, str] = {}
    #: By input topic, the leader epoch of the last record folded, or a later one that was read.
    leader_epochs: dict[str, int] = {}
    #: Among how many partitions the application's keys were divided; 0: as many as the profile creates.
    partitions: int = 0
    #: Of global tables, by `<topic>/<partition>`: the offset before which records that are no entries were rejected.
    table_offsets: dict[str, int] = {}


class _MetaFormat(msgspec.Struct, frozen=True, array_like=True):
    """The format of a meta row: it has this place in every format."""

    next_offsets: Any
    clock_ms: Any
    commit_number: Any
    format: int


_META_DECODER: Final = msgspec.msgpack.Decoder(Meta)
_META_FORMAT_DECODER: Final = msgspec.msgpack.Decoder(_MetaFormat)


def encode_meta(meta: Meta) -> bytes:
    """The bytes of a meta row."""
    return msgspec.msgpack.encode(meta)


def decode_meta(data: bytes) -> Meta:
    """The meta row in `data`. Raises `NewerFormat` when a newer version wrote it, `msgspec.MsgspecError` when it is not a meta
    row."""
    # First of all: what else a newer version has changed in it, only that version knows.
    check_format(_META_FORMAT_DECODER.decode(data).format)
    return _META_DECODER.decode(data)
