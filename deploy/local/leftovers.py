"""A record of the processes of a run, so that the next run can end what a killed one left behind, and nothing else."""

import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from deploy.local.process import DeadlinePassed, wait_until

_END_SECONDS_MAX: Final = 10.0
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class Leftovers:
    """The file that names a run's processes by pid, start time and boot: a pid that was given out again is not ours."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def record(self, pids: Mapping[str, int | None]) -> None:
        """Writes down the processes that run now, in the order of their start."""
        entries = [
            {"name": name, "pid": pid, "birth": birth}
            for name, pid in pids.items()
            if pid is not None and (birth := _birth(pid)) is not None
        ]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(entries))
        fresh.replace(self._file)

    def clear(self) -> None:
        """Says that nothing runs any more."""
        self._file.unlink(missing_ok=True)

    def end(self) -> list[str]:
        """Ends what an earlier run left running, last started first; their names with pids."""
        if not self._file.exists():
            return []
        alive = [entry for entry in json.loads(self._file.read_text()) if _birth(entry["pid"]) == entry["birth"]]
        for entry in reversed(alive):
            _end(entry["pid"], entry["birth"])
        self.clear()
        return [f"{entry['name']} (pid {entry['pid']})" for entry in alive]


def _end(pid: int, birth: str) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        with suppress(DeadlinePassed):
            wait_until(lambda: _birth(pid) != birth, _END_SECONDS_MAX, f"pid {pid} ends")
            return


def _birth(pid: int) -> str | None:
    """Distinguishes this process from any other that has or will have its pid; None if it has ended (or is a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # Fields 3 and 22 of /proc/pid/stat: state, and start time in clock ticks since boot.
    return None if fields[0] == "Z" else f"{_BOOT_ID.read_text().strip()}/{fields[19]}"
