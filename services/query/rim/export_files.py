"""Exports on disk: of each a file of its state and, once it is done, its result. Several processes may share the folder.

A job belongs to one process as long as that holds the lock on its file. So another process continues a job whose process has
ended, or the same one after its restart.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import structlog

from services.query.core.resources.exports.exports import Job

log = structlog.get_logger(__name__)

ID: Final = re.compile(r"[0-9a-f]{32}")
_DECODER: Final = msgspec.json.Decoder(Job)


class ExportFiles:
    """The folder. Its methods block for as long as a disk does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, job: Job) -> None:
        """Writes the state of a new job, whole or not at all."""
        self._written(job).replace(self._state(job.id))

    def change(self, job: Job) -> bool:
        """Writes another state of a job in the same way, and takes over the result of one that is done.

        Whether there is the job: of one that was deleted meanwhile, nothing is kept.
        """
        written = self._written(job)
        with self._locked():
            if not self._state(job.id).exists():
                self._remove(job)
                return False
            if job.state == "done":
                self.part(job).replace(self.result(job))
            written.replace(self._state(job.id))
        return True

    def read(self, job_id: str) -> Job | None:
        """A job; None for an unknown id."""
        if not ID.fullmatch(job_id):
            return None
        try:
            return _DECODER.decode(self._state(job_id).read_bytes())
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, OSError) as error:
            log.warning("export_unreadable", export=job_id, kind=type(error).__name__)
            return None

    def all(self) -> list[Job]:
        """Every job, the oldest first."""
        found = (self.read(file.stem) for file in self._folder.glob("*.json"))
        return sorted((job for job in found if job is not None), key=lambda job: (job.created_ms, job.id))

    def result(self, job: Job) -> Path:
        """Where its result is, once it is done."""
        return self._folder / f"{job.id}.{job.format}"

    def part(self, job: Job) -> Path:
        """Where its result is written."""
        return self._folder / f"{job.id}.part"

    def stored_bytes(self) -> int:
        """What all results take."""
        return sum(job.bytes or 0 for job in self.all())

    def delete(self, job: Job) -> None:
        """Deletes a job and its result."""
        with self._locked():
            self._remove(job)

    @contextmanager
    def claimed(self, job: Job) -> Iterator[bool]:
        """Whether the job is this process's alone while the block runs."""
        with self._lock(job.id).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def _written(self, job: Job) -> Path:
        path = self._writing(job.id)
        with path.open("wb") as file:
            file.write(msgspec.json.encode(job))
            file.flush()
            os.fsync(file.fileno())
        return path

    def _remove(self, job: Job) -> None:
        for path in (
            self._state(job.id),
            self.result(job),
            self.part(job),
            self._writing(job.id),
            self._lock(job.id),
        ):
            path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """While no other thread or process deletes a job or changes a state: who deletes one cannot hold its own lock."""
        with (self._folder / "states.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _state(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.json"

    def _writing(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.writing"

    def _lock(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.lock"
