"""Named points at which a test makes a process kill or stop itself, to show recovery from a crash between any two steps.

A point is armed by a service's `..._CRASH_AT` alone: `<point>[:<n>][:stop]`. When the process reaches the point for the n-th time,
it kills itself (as `kill -9` would) or stops (as a stalled machine would) until SIGCONT. A point that is not armed has no effect.
"""

import os
import signal
import threading
from typing import Final, Literal, get_args

import structlog

log = structlog.get_logger(__name__)

CrashPoint = Literal[
    # Finalizer, in a batch: after unparsed records were stored, after slices were marked dirty, after the merge into `views`,
    # after the rollups of slices were rebuilt, after a transaction of slices was published; after one of the raw tables.
    "unparsed",
    "marked",
    "merged",
    "rebuilt",
    "published",
    "raw_appended",
    # Finalizer, in a deletion: after the work of a step, before it is noted.
    "deletion_step",
    # Processor, in a commit, after each of its steps (`runtime.checkpoints`).
    "begun",
    "produced",
    "offsets_sent",
    "committed",
    # Processor, in a flush: after a slice of rows, before the position; after all of it.
    "slice_written",
    "rows_written",
    "flushed",
    # Processor, in a takeover: before the fence and after it; in the replay, after rows of which the position does not know,
    # and after its position was noted.
    "fencing",
    "fenced",
    "replaying",
    "position_noted",
    # Processor, as a member of the group: partitions are to be given up, and nothing of it is done.
    "revoking",
    # Processor, in a growth (`operations.growing`): in a transaction that copies rows; topics have grown; in the transaction of a
    # partition, after rows were produced and after it.
    "grow_copying",
    "grow_raised",
    "grow_produced",
    "grow_moved",
    # Serving, in the transaction of some records: after positions were moved, after rows were written; `committed` after it.
    "moved",
    "written",
    # Serving, in the transaction of live minutes: the same steps.
    "live_moved",
    "live_written",
    "live_committed",
    # Processor: an object was stored, and no record of it is written yet (`runtime.media`).
    "media_stored",
]

#: What `..._CRASH_AT` may be.
ARMED_PATTERN: Final = rf"^({'|'.join(get_args(CrashPoint))})(:[1-9][0-9]{{0,6}})?(:stop)?$"


class CrashPoints:
    """Which point of this process is armed, if any. Safe from any thread."""

    def __init__(self, armed: str | None = None) -> None:
        """`armed` is None or matches `ARMED_PATTERN`."""
        self._point, *more = (armed or "").split(":")
        self._signal = signal.SIGSTOP if "stop" in more else signal.SIGKILL
        self._times_left = next((int(part) for part in more if part != "stop"), 1)
        self._lock = threading.Lock()
        if armed is not None:
            log.warning("crash_point_armed", point=armed)

    def reach(self, here: CrashPoint) -> None:
        """Ends or stops this process when `here` is the armed point, reached for the n-th time; once."""
        if self._point != here:
            return
        with self._lock:
            self._times_left -= 1
            is_now = self._times_left == 0
        if is_now:
            log.error("crash_point", point=here)
            os.kill(os.getpid(), self._signal)
