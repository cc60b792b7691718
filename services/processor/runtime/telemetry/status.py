"""The status of a slot for operators: its partitions and the resources it uses. The classes are the JSON documents."""

import resource
import time
from pathlib import Path
from typing import Final

import msgspec

_PAGE_BYTES: Final = resource.getpagesize()


class QuarantinedKeyStatus(msgspec.Struct, frozen=True):
    """One key whose records are rejected because the application failed on it repeatedly."""

    partition: int
    #: As text, where it is text, and in any case as base64.
    key: str
    key_base64: str
    #: The partition's clock then, ms since 1970; and the last failure.
    since_ms: int
    reason: str
    failures: int
    #: Records rejected since, and rows kept aside with their bytes.
    rejected: int
    rows: int
    row_bytes: int


def rss_bytes() -> int:
    """Memory of this process that is resident."""
    statm = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(statm.split()[1]) * _PAGE_BYTES


class Usage:
    """What records cost in CPU time, over intervals in which there were any."""

    def __init__(self) -> None:
        self._records = 0
        self._cpu_seconds = time.process_time()
        self.cpu_seconds_per_record: float | None = None

    def read(self, records: int) -> None:
        """So many records were read."""
        self._records += records

    def measure(self) -> None:
        """Closes an interval."""
        cpu_seconds = time.process_time()
        if self._records:
            self.cpu_seconds_per_record = (cpu_seconds - self._cpu_seconds) / self._records
        self._records, self._cpu_seconds = 0, cpu_seconds
