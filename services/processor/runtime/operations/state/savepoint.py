"""A savepoint: the state of an application at a commit of each partition, as files in a folder.

    00000.rows, 00001.rows, …   rows of each partition, in the order of their keys
    savepoint.json              `Savepoint`, written last: a folder without it is no savepoint

A file of rows is a sequence of: bytes of the row key (4, big endian), bytes of the row (4), row key, row. A row has its format in
its first two bytes (`engine.state.rows`).
"""

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import ROW_FORMAT, NewerFormat

FORMAT: Final = 1
NAME: Final = "savepoint.json"
_HEAD: Final = struct.Struct(">II")
#: What is read of a file at once.
_CHUNK_BYTES: Final = 1 << 20


class SavepointWrong(RuntimeError):
    """The folder holds no whole savepoint, or cannot take one; the text says why."""


class SavedPartition(msgspec.Struct, frozen=True):
    """One partition of a savepoint."""

    partition: int
    file: str
    rows: int
    sha256: str
    #: The position at the commit; None of a partition that never committed.
    meta: Meta | None


class Savepoint(msgspec.Struct, frozen=True):
    """What stands in `savepoint.json`."""

    format: int
    application: str
    #: Of rows' envelopes.
    row_format: int
    #: Names of the stores by id, as the application declared them.
    stores: dict[int, str]
    partitions: list[SavedPartition]


class _Format(msgspec.Struct, frozen=True):
    """The format of a `savepoint.json`, whichever it is."""

    format: int
    row_format: int


def write_rows(folder: Path, partition: int, rows: Iterable[tuple[bytes, bytes]], meta: Meta | None) -> SavedPartition:
    """Writes the rows of a partition, durably; returns what the savepoint says of them. A former file is replaced."""
    path = folder / f"{partition:05}.rows"
    partial, digest, count = path.with_suffix(".partial"), hashlib.sha256(), 0
    with partial.open("wb") as file:
        for key, row in rows:
            data = _HEAD.pack(len(key), len(row)) + key + row
            digest.update(data)
            file.write(data)
            count += 1
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return SavedPartition(partition, path.name, count, digest.hexdigest(), meta)


def write(folder: Path, savepoint: Savepoint) -> None:
    """Writes `savepoint.json`: from now on the folder is a savepoint."""
    partial = folder / f"{NAME}.partial"
    with partial.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(savepoint)))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / NAME)
    at = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(at)
    finally:
        os.close(at)


def read(folder: Path) -> Savepoint:
    """The savepoint in a folder. Raises `SavepointWrong`; `NewerFormat` for one of a newer version."""
    try:
        data = (folder / NAME).read_bytes()
        known = msgspec.json.decode(data, type=_Format)
        if known.format > FORMAT or known.row_format > ROW_FORMAT:
            raise NewerFormat(
                f"{folder}: the savepoint has format {known.format}, its rows {known.row_format};"
                f" this version knows up to {FORMAT} and {ROW_FORMAT}: upgrade it"
            )
        return msgspec.json.decode(data, type=Savepoint)
    except OSError as error:
        raise SavepointWrong(f"{folder} holds no savepoint: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise SavepointWrong(f"{folder / NAME}: {error}") from error


def verify(folder: Path, saved: SavedPartition) -> None:
    """Raises `SavepointWrong` unless the partition's file is as it was written."""
    digest = hashlib.sha256()
    try:
        with (folder / saved.file).open("rb") as file:
            while data := file.read(_CHUNK_BYTES):
                digest.update(data)
    except OSError as error:
        raise SavepointWrong(f"{folder / saved.file}: {error.strerror}") from error
    if digest.hexdigest() != saved.sha256:
        raise SavepointWrong(f"{folder / saved.file} is not as it was written")


def rows_of(folder: Path, saved: SavedPartition) -> Iterator[tuple[bytes, bytes]]:
    """The rows of a partition by row key; `verify` it first."""
    with (folder / saved.file).open("rb") as file:
        while head := file.read(_HEAD.size):
            key_bytes, row_bytes = _HEAD.unpack(head)
            yield file.read(key_bytes), file.read(row_bytes)
