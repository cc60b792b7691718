"""Answers: what others ask of the rows of a partition at work. Used by the slot's folding thread, between two records."""

import base64
from collections.abc import Collection, Mapping

from services.processor.engine.application.application import Lookup
from services.processor.engine.application.requests import Query
from services.processor.engine.core.core import Core
from services.processor.engine.state.failures import ApplicationFailed
from services.processor.engine.state.local import StoreCorrupt
from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition.commits import Commits
from services.processor.runtime.partition.inputs import Inputs
from services.processor.runtime.questions import Looked, Unanswered
from services.processor.runtime.telemetry.status import QuarantinedKeyStatus

#: The next turn that reads the store meets it too, and takes the partition over again.
_UNREADABLE = "the local store cannot be read"


class KeptInQuarantine(RuntimeError):
    """A key cannot be released; the text says why."""


class Answers:
    """Answers from a core that is between two records."""

    def __init__(self, partition: int, core: Core, inputs: Inputs, commits: Commits) -> None:
        self._partition = partition
        self._core = core
        self._inputs = inputs
        self._commits = commits

    def look(self, lookup: Lookup, key: bytes, ends: Mapping[str, End]) -> Looked:
        """Answers a lookup from the core's committed rows. Raises `Unanswered` or `LookFailed`.

        A row that is missing proves nothing before the core has caught up: the former owner may have acknowledged its input.
        """
        try:
            json = self._core.look(lookup, key)
        except StoreCorrupt as error:
            raise Unanswered(_UNREADABLE) from error
        if json is None and not self._inputs.has_caught_up(self._core, ends):
            raise Unanswered("not there yet: the partition was taken or rolled back and has not caught up")
        lag_records = self._inputs.lag_records(self._core, ends)
        return Looked(json, self._commits.committed_at, lag_records)

    def ask(self, query: Query, subject: bytes) -> bytes | None:
        """Answers a query from the core's committed rows. Raises `Unanswered` or `LookFailed`.

        All answers given from them are in the changelog: a core that has just been taken over has them too.
        """
        try:
            return self._core.ask(query, subject)
        except StoreCorrupt as error:
            raise Unanswered(_UNREADABLE) from error

    def quarantined(self) -> list[QuarantinedKeyStatus]:
        """The quarantined keys."""
        return [self._status(key) for key in self._core.quarantined]

    @property
    def quarantined_keys(self) -> Collection[bytes]:
        """The record keys of the quarantined keys."""
        return self._core.quarantined.keys()

    @property
    def is_full(self) -> bool:
        """Whether the checkpoint must be cut before more is released."""
        return self._core.is_full

    def release(self, key: bytes) -> tuple[QuarantinedKeyStatus, int]:
        """Releases a quarantined key. Returns what it was, and the number of the commit that will have the release.

        An abort before that commit quarantines the key again. Raises `KeptInQuarantine`.
        """
        status = self._status(key)
        try:
            self._core.release(key)
        except ApplicationFailed as error:
            raise KeptInQuarantine(str(error)) from error
        except StoreCorrupt as error:
            raise KeptInQuarantine(_UNREADABLE) from error
        # What is in flight was cut before.
        return status, self._core.committed.commit_number + (2 if self._commits.is_in_flight else 1)

    def _status(self, key: bytes) -> QuarantinedKeyStatus:
        held = self._core.quarantined[key]
        return QuarantinedKeyStatus(
            partition=self._partition,
            key=key.decode(errors="replace"),
            key_base64=base64.b64encode(key).decode(),
            since_ms=held.since_ms,
            reason=held.reason,
            failures=held.failures,
            rejected=held.rejected,
            rows=held.rows,
            row_bytes=held.row_bytes,
        )
