"""The files of a RocksDB store: opened, deleted, and what their errors mean."""

import gc
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rocksdict import Options, Rdict

from services.processor.engine.state.local import StoreCorrupt, StoreFailed, StoreFull, StoreLocked
from services.processor.runtime.store.rocksdb_options import Memory, options_of

_OPEN_RETRY_SECONDS: Final = 0.1
#: How RocksDB's own texts begin, or what they hold, by what they mean (rocksdict raises them as bare `Exception`).
_FULL: Final = ("No space left on device", "File too large", "Disk quota exceeded")


def opened(path: Path, memory: Memory, seconds_max: float) -> Rdict:
    """Opens a store, waiting for a former handle of this process to be closed or collected. Raises `StoreFailed`."""
    options = options_of(memory)
    # Turns, not the clock: a process that was stopped meanwhile has waited for nothing.
    for _ in range(round(seconds_max / _OPEN_RETRY_SECONDS)):
        try:
            return _opened(path, options)
        except StoreLocked:
            gc.collect()
            time.sleep(_OPEN_RETRY_SECONDS)
    return _opened(path, options)


def _opened(path: Path, options: Options) -> Rdict:
    with failures(path):
        return Rdict(str(path), options)


def delete_store(path: Path) -> None:
    """Deletes a closed store's files: the changelog has all that they held. Raises `StoreFailed`."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise failed(path, error) from error


def delete_unused_store(path: Path) -> bool:
    """Deletes a store's files unless it is open, in this process or another. Raises `StoreFailed`."""
    try:
        with failures(path):
            # Never by `rmtree`: it would delete the files of a store that is opened meanwhile.
            Rdict.destroy(str(path), Options(raw_mode=True))
    except StoreLocked:
        return False
    return True


@contextmanager
def failures(path: Path) -> Iterator[None]:
    """Gives RocksDB's failures a kind."""
    try:
        yield
    except Exception as error:
        # A subclass is not RocksDB's: rocksdict raises `Exception` itself.
        if type(error) is not Exception:
            raise
        raise failed(path, error) from error


def failed(path: Path, error: Exception) -> StoreFailed:
    """The error of a store's files, by its kind."""
    text = str(error)
    if any(sign in text for sign in _FULL):
        return StoreFull(f"{path} cannot grow (is the disk full?): {text}")
    if text.startswith("Corruption"):
        return StoreCorrupt(f"{path} is corrupt: {text}")
    if "/LOCK:" in text:
        return StoreLocked(f"{path} is in use by another process: {text}")
    return StoreFailed(f"{path}: {text}")
