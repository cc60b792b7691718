"""How full the disks are that a process writes to. Read at each scrape of the metrics."""

import shutil
from functools import partial
from pathlib import Path

from services.rim.telemetry.metrics import gauge
from shared.metrics import DISK_BYTES, DISK_FREE_BYTES

_UNKNOWN = float("nan")


def watch(name: str, folder: Path) -> None:
    """From now on metrics report the disk of `folder`, under `name` (the same on every host). The folder may be created later."""
    gauge(DISK_FREE_BYTES).labels(name).set_function(partial(_bytes, folder, "free"))
    gauge(DISK_BYTES).labels(name).set_function(partial(_bytes, folder, "total"))


def _bytes(folder: Path, which: str) -> float:
    """`free` (to this user) or `total`, of the folder or the nearest above it that exists; NaN where neither can be read."""
    for candidate in (folder.absolute(), *folder.absolute().parents):
        try:
            return float(getattr(shutil.disk_usage(candidate), which))
        except FileNotFoundError:
            continue
        except OSError:
            return _UNKNOWN
    return _UNKNOWN
