"""Acts on the rows of one record key: read, and delete."""

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from services.processor.engine.application.application import Application, MapSpec
from services.processor.engine.core.core import Core
from services.processor.engine.state.local import LocalStore
from services.processor.engine.state.rows import end_of, unpack
from services.processor.engine.state.store_spec import StoreSpec
from services.processor.runtime.operations.state.changing import Change, Unsafe, refuse_while_slots_work
from services.processor.runtime.operations.state.copies import copied
from services.rim.process.crash_points import CrashPoints
from shared.partitioning import partition_of
from shared.settings import Settings

#: Rows of a key that are shown.
ROWS_MAX: Final = 1_000
_PAGE_ROWS: Final = 500


class ReadRow(msgspec.Struct, frozen=True):
    """A row as an operator reads it."""

    store: str
    #: Bytes that are no UTF-8 are shown as \\x and two digits.
    key: str
    format: int
    #: Ms since 1970; 0: no timer.
    deadline_ms: int
    bytes: int
    #: What the application decodes, as JSON; null where it cannot.
    row: Any


class Deleted(msgspec.Struct, frozen=True):
    """The rows of a key that were deleted, or with `--dry-run` would be; and what the application put out for that."""

    partition: int
    rows: int
    outputs: int


def read(settings: Settings, application: Application, key: bytes) -> list[ReadRow]:
    """The committed rows of a record key, up to `ROWS_MAX`; slots may be at work. Raises as `copies.copied` does."""
    number = partition_of(key, application.partitions(settings.profile))
    with tempfile.TemporaryDirectory() as folder, copied(settings, application, number, Path(folder) / "rows") as copy:
        found: list[ReadRow] = []
        for spec in application.stores:
            for row_key, row in rows_of_key(copy.store, spec, key):
                if len(found) == ROWS_MAX:
                    return found
                found.append(_read(spec, row_key, row))
        return found


def rows_of_key(store: LocalStore, spec: StoreSpec[Any], key: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The rows of a record key in one store, by row key."""
    prefix = bytes([spec.id]) + spec.prefix_of(key)
    if spec.record_key is None and not isinstance(spec, MapSpec):
        row = store.get(prefix)
        if row is not None:
            yield prefix, row
        return
    first, before = prefix, end_of(prefix)
    while page := store.page(first, before, _PAGE_ROWS):
        # Rows of longer keys may begin so too.
        yield from ((row_key, row) for row_key, row in page if spec.record_key_of(row_key[1:]) == key)
        first = page[-1][0] + b"\x00"


def _read(spec: StoreSpec[Any], row_key: bytes, row: bytes) -> ReadRow:
    deadline_ms, row_format, payload = unpack(row)
    decode = spec.decode if row_format == spec.format else spec.also_reads.get(row_format)
    shown = None
    if decode is not None:
        try:
            shown = msgspec.to_builtins(decode(payload), str_keys=True, enc_hook=_unpacked)
        except Exception:  # noqa: BLE001  (any row is listed, also one on which the application raises)
            shown = None
    text = row_key[1:].decode(errors="backslashreplace")
    return ReadRow(spec.name, text, row_format, deadline_ms, len(row), shown)


def _unpacked(value: Any) -> Any:
    """What a decoded row keeps packed, as the timeline of a view. Raises `TypeError` for anything else."""
    if isinstance(value, msgspec.Raw):
        return msgspec.msgpack.decode(value)
    raise TypeError(f"{type(value).__name__} cannot be shown")


def delete(settings: Settings, application: Application, key: bytes, *, is_dry: bool, points: CrashPoints) -> Deleted:
    """Deletes all rows of a record key, quarantined ones too, as a fold that forgets it does: what they counted for is undone.

    Raises `Unsafe` while slots work and where the key has no rows; as `copies.copied` does.
    """
    number = partition_of(key, application.partitions(settings.profile))
    refuse_while_slots_work(settings, application)
    change = None if is_dry else Change(settings, application, points)
    with tempfile.TemporaryDirectory() as folder, copied(settings, application, number, Path(folder) / "rows") as copy:
        # The release stays the one that committed last: that of the command folds nothing.
        version = copy.meta.version if copy.meta is not None else ""
        core = Core(dataclasses.replace(application, version=version), number, copy.store)
        core.forget(key)
        if not core.dirty_rows:
            raise Unsafe(f"{application.name} has no rows of this key")
        checkpoint = core.cut()
        if change is not None:
            change.rows(number, checkpoint.changes.items())
            change.outputs(number, checkpoint.outputs)
            change.meta(number, checkpoint.meta)
            change.commit()
        return Deleted(number, sum(row is None for row in checkpoint.changes.values()), len(checkpoint.outputs))
