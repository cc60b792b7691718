"""Control groups of the kernel that workers of pytest join, each its own: what they start is in them, too.

They need root and cgroup v1. Elsewhere `may_join` is false, and callers go on without a group.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_PREFIX: Final = "playhead-"


def may_join(controller: str, root: Path = _ROOT) -> bool:
    """Whether this process may make groups of a controller."""
    return os.access(root / controller, os.W_OK)


def join(controller: str, root: Path = _ROOT) -> Path:
    """Makes a group for this process, and all that it starts from now on; its folder. Raises `OSError`."""
    group = root / controller / f"{_PREFIX}{os.getpid()}"
    group.mkdir(exist_ok=True)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    return group


def remove_empty(controller: str, root: Path = _ROOT) -> None:
    """Removes the groups that earlier runs have left."""
    for group in (root / controller).glob(f"{_PREFIX}*"):
        # One that has processes stays.
        with contextlib.suppress(OSError):
            group.rmdir()
