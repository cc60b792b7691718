"""One driver a checkpoint: a lock on a file beside it, held for the life of the process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CheckpointInUse(RuntimeError):
    """Another driver works on this checkpoint; two would race."""


@contextmanager
def hold(checkpoint_dir: Path) -> Iterator[None]:
    """Holds the checkpoint's lock; the system gives it back however the process ends. Raises `CheckpointInUse`."""
    checkpoint_dir.parent.mkdir(parents=True, exist_ok=True)
    path = checkpoint_dir.with_name(checkpoint_dir.name + ".lock")
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise CheckpointInUse(
                f"checkpoint {checkpoint_dir} is in use by the process {holder}; a checkpoint takes one driver"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
