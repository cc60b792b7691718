"""One driver per checkpoint: a lock on a file beside it, held until the process ends.

An object store has no such lock: there the serving database's fence refuses the older of two drivers at its next write.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.finalizer.failures import JobFailed
from services.finalizer.settings import is_local


class CheckpointInUse(JobFailed):
    """Another driver works on this checkpoint; two would race."""


@contextmanager
def hold(checkpoint: str) -> Iterator[None]:
    """Holds the checkpoint's lock; the system gives it back however the process ends. Raises `CheckpointInUse`."""
    if not is_local(checkpoint):
        yield
        return
    path = Path(checkpoint + ".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise CheckpointInUse(
                f"checkpoint {checkpoint} is in use by the process {holder}; a checkpoint takes one driver:"
                " stop that one first (SIGTERM ends it between two batches)"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
