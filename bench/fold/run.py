"""One run of the benchmark in a process of its own: `python -m bench.fold.run FILE`, of the pickled records in FILE.

Prints beacons, CPU seconds, seconds after the last record, and the hash of what was written, as JSON. PROCESSOR_COMPILED_DIR names
a compiled build; it is chosen before the fold is imported.
"""

import hashlib
import json
import os
import pickle
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from services.rim.process import compiled

BUILD: Final = compiled.choose("processor", os.environ)

from bench.fold.inputs import Input  # noqa: E402
from services.processor.catalogue import APPLICATIONS  # noqa: E402
from services.processor.engine.core.core import Core  # noqa: E402
from services.processor.engine.record import Record  # noqa: E402
from services.processor.engine.state.local import LocalMeta, MemoryStore  # noqa: E402
from services.rim.process import garbage  # noqa: E402
from shared import topics  # noqa: E402

COMMIT_RECORDS: Final = 2_000
FLUSH_COMMITS: Final = 10
#: Every view has finished and closed after it, ms.
_OVER_MS: Final = 30 * 3_600_000
_STEP_MS: Final = 60_000


class Folded(NamedTuple):
    """A run: beacons, CPU seconds in all, of these after the last record (finishes and rows), and the hash of what was written."""

    beacons: int
    cpu_seconds: float
    end_seconds: float
    written: str


def folded(inputs: Sequence[Input]) -> Folded:
    """Folds the records on one core, commits, and lets every view finish."""
    records = [
        Record(topics.BEACONS.name, 0, offset, one.at_ms, one.key, one.value, ()) for offset, one in enumerate(inputs)
    ]
    run = _Run()
    # As a slot does.
    garbage.look_seldom(garbage.FOLD_OBJECTS_MAX)
    began = time.process_time()
    for first in range(0, len(records), COMMIT_RECORDS):
        run.fold(records[first : first + COMMIT_RECORDS])
    last = time.process_time()
    run.finish(inputs[-1].at_ms)
    ended = time.process_time()
    return Folded(len(records), ended - began, ended - last, run.hash.hexdigest())


class _Run:
    """A core with a local store in memory."""

    def __init__(self) -> None:
        self._local = MemoryStore()
        self._core = Core(APPLICATIONS["video_views"]({}), 0, self._local)
        self._commits = 0
        self.hash = hashlib.sha256()

    def fold(self, records: Sequence[Record]) -> None:
        taken = 0
        while taken < len(records):
            taken += self._core.fold(records[taken:])
            self._commit()

    def finish(self, clock_ms: int) -> None:
        """Lets time pass until nothing is due any more."""
        over_ms = clock_ms + _OVER_MS
        while clock_ms < over_ms:
            clock_ms = min(over_ms, clock_ms + _STEP_MS)
            while not self._core.advance_to(clock_ms):
                self._commit()
            self._commit()

    def _commit(self) -> None:
        if not self._core.is_dirty:
            return
        checkpoint = self._core.cut()
        update = self.hash.update
        for key, row in checkpoint.changes.items():
            update(key)
            update(b"\x00" if row is None else row)
        for output in checkpoint.outputs:
            update(output.topic.encode())
            update(output.key or b"")
            update(output.value or b"\x00")
        self._core.commit()
        self._commits += 1
        if self._commits % FLUSH_COMMITS == 0:
            rows, meta = self._core.begin_flush()
            self._local.write(rows, LocalMeta(meta, self._commits))
            self._core.end_flush()


if __name__ == "__main__":
    if os.environ.get("PROCESSOR_COMPILED") == "required" and not BUILD.is_compiled:
        sys.exit(BUILD.reason)
    made = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301 (our own file)
    print(json.dumps(folded([Input(*one) for one in made])))
