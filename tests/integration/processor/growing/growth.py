"""The command that raises the number of partitions, as a process of its own."""

import os
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from deploy.local import process
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import ROOT, wait_until

WANTED = 2 * PARTITIONS
SECONDS_MAX = 120.0


class Growth:
    """`python -m deploy.topics grow` to twice the partitions, running. `environ` is added to ours."""

    def __init__(self, folder: Path, environ: Mapping[str, str], *arguments: str) -> None:
        self._output = folder / f"growth-{uuid.uuid4().hex}.log"
        argv = [sys.executable, "-m", "deploy.topics", "grow", "beacons", str(WANTED), "--processes", "1", *arguments]
        with self._output.open("wb") as output:
            self._process = process.launch(argv, output.fileno(), {**os.environ, **environ}, ROOT, None)

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self._output.read_text()

    def until(self, words: str) -> None:
        """Waits until it has printed these."""
        wait_until(lambda: words in self.said or self._process.poll() is not None, f"it says {words!r}", SECONDS_MAX)
        assert words in self.said, self.said

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait(SECONDS_MAX)

    def ended(self) -> int:
        """Waits until it ends by itself; the exit code (negative: the signal's number)."""
        return self._process.wait(SECONDS_MAX)
