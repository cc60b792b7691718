"""Hosts whose clock steps and whose disk is slow: a small library that a process preloads reads from a file what is wrong."""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.chaos.production.network import CannotRun

_SOURCE: Final = Path(__file__).with_name("host.c")


def library(folder: Path) -> Path:
    """Compiles the library into `folder`. Raises `CannotRun`."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise CannotRun("clocks and disks are disturbed by a library in C: run apt-get install --yes gcc libc6-dev")
    made = folder / "host.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(_SOURCE), "-ldl"], check=True)
    return made


class Disturbed:
    """What is wrong with the host of one process, which reads `file`; at first nothing."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.write_bytes(bytes(16))

    def set(self, *, off_seconds: int = 0, disk_ms: float = 0.0) -> None:
        """From now on: the time of day is off by so much, and each write to a file and each flush takes longer by so much."""
        # In place: a process has mapped it.
        with self._file.open("r+b") as file:
            file.write(struct.pack("=qq", off_seconds, round(disk_ms * 1_000)))

    def environ(self, preload: Path) -> Mapping[str, str]:
        """The variables of a process on this host."""
        return {"LD_PRELOAD": str(preload), "PLAYHEAD_HOST_FILE": str(self._file)}
