"""Local stores that no process has open, made worse by hand."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from services.processor.applications.video_views.stores import VIEWS
from services.processor.applications.video_views.view.order.by_number import ByNumber
from services.processor.applications.video_views.view.progress.progress import Progress
from services.processor.applications.video_views.view.state import new_view
from services.processor.engine.state.local import LocalMeta
from services.processor.engine.state.rows import pack
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.rocksdb_options import Memory

MEMORY: Final = Memory(block_cache_bytes=4 << 20, write_buffer_bytes=8 << 20)
DAY_MS: Final = 86_400_000
NOBODYS: Final = bytes([VIEWS.id]) + b"acme:ghost"


def written(folder: Path) -> set[str]:
    """The stores in `folder` that have written a file of rows."""
    return {path.parent.name for path in folder.glob("*/*.sst")}


def garbage(path: Path, start: int = 0) -> None:
    """Overwrites a file with noise from `start` on, up to its footer when not from its beginning."""
    size = path.stat().st_size
    end = size if start == 0 else max(start, size // 2)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(os.urandom(end - start))


def ghost() -> bytes:
    """A view that was closed long ago, and whose deletion the changelog has forgotten: trusted, it would become a row."""
    now_ms = time.time_ns() // 1_000_000
    view = new_view("mux", now_ms - DAY_MS)
    view.order = ByNumber(first_seq=1, next_seq=2)
    view.folded.progress = Progress(has_begun=True)
    view.beacon_count = 1
    return pack(now_ms - DAY_MS, VIEWS.encode(view))


def change_position(
    folder: Path, change: Callable[[LocalMeta], LocalMeta], row: bytes = b"", key: bytes = NOBODYS
) -> None:
    """Moves the position of the store in `folder`; `row` is put beside it, under an unused key unless another is given."""
    store = RocksStore(folder, MEMORY, open_seconds_max=5)
    position = store.position()
    assert position is not None
    store.write({key: row} if row else {}, change(position))
    store.close()


def stands_at(folder: Path) -> int:
    """The offset of the changelog that the store in `folder` stands at."""
    store = RocksStore(folder, MEMORY, open_seconds_max=5)
    position = store.position()
    store.close()
    assert position is not None
    return position.changelog_offset
