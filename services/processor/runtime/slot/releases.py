"""Releases: quarantined keys that operators release, a few in each turn, each until its commit. Used by the slot's loop only."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Final, NamedTuple

import msgspec
import structlog

from services.processor.runtime.partition.answers import KeptInQuarantine
from services.processor.runtime.partition.working import Working
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.telemetry.status import QuarantinedKeyStatus

log = structlog.get_logger(__name__)

RELEASES_MAX: Final = 16
#: Keys of one release in a turn: each puts its rows back, which the loop does not do for all at once.
KEYS_PER_TURN_MAX: Final = 16


class Released(msgspec.Struct):
    """What has become of a release."""

    #: Released, durably; as they were before.
    keys: list[QuarantinedKeyStatus] = []
    #: Why a key stays quarantined, by key.
    kept: dict[str, str] = {}
    #: Keys that are still being released.
    left: int = 0


class _Committing(NamedTuple):
    partition: int
    key: bytes
    status: QuarantinedKeyStatus
    #: The number of the commit that has the release.
    commit_number: int


class _Release:
    """One release. It goes through all its keys, also when nobody waits any more: the first of them may fail each time."""

    def __init__(self, key: bytes, partitions: Iterable[int], until: float) -> None:
        self.answer: Future[Released] = Future()
        #: Partitions and keys; an empty key stands for all keys of its partition.
        self._waiting = deque((partition, key) for partition in partitions)
        self._committing: list[_Committing] = []
        self._released = Released()
        self._until = until

    @property
    def is_over(self) -> bool:
        return not self._waiting and not self._committing

    def turn(self, working: Mapping[int, Working]) -> None:
        for _ in range(min(KEYS_PER_TURN_MAX, len(self._waiting))):
            self._try(*self._waiting.popleft(), working)
        committing, self._committing = self._committing, []
        for one in committing:
            self._settle(one, working)
        is_answered = self.answer.done()
        if (self.is_over or self._is_late) and not is_answered and self.answer.set_running_or_notify_cancel():
            left = len(self._waiting) + len(self._committing)
            # A copy: the release may go on.
            self.answer.set_result(Released(list(self._released.keys), dict(self._released.kept), left))

    @property
    def _is_late(self) -> bool:
        return time.monotonic() >= self._until

    def _try(self, partition: int, key: bytes, working: Mapping[int, Working]) -> None:
        if partition not in working:
            self._keep(partition, key, "its partition is not at work here any more")
            return
        try:
            answers = working[partition].answers
        except Unanswered:
            # A record is being rejected.
            self._waiting.append((partition, key))
            return
        if not key:
            self._waiting.extend((partition, held) for held in answers.quarantined_keys)
        elif answers.is_full:
            self._waiting.append((partition, key))
        elif key in answers.quarantined_keys:
            try:
                self._committing.append(_Committing(partition, key, *answers.release(key)))
            except KeptInQuarantine as error:
                self._keep(partition, key, str(error))

    def _settle(self, one: _Committing, working: Mapping[int, Working]) -> None:
        """Whether the commit that has the release is durable. One that was aborted has dropped it: it is tried again."""
        at_work = working.get(one.partition)
        if at_work is None:
            self._keep(one.partition, one.key, "its partition was given up before the commit ended: it may be released")
            return
        try:
            quarantined_keys = at_work.answers.quarantined_keys
        except Unanswered:
            self._committing.append(one)
            return
        if one.key in quarantined_keys:
            if self._is_late:
                self._keep(one.partition, one.key, "its release was dropped with its commit")
            else:
                self._waiting.append((one.partition, one.key))
        elif at_work.commit_number >= one.commit_number:
            log.info("released", partition=one.partition, key=one.status.key)
            self._released.keys.append(one.status)
        else:
            self._committing.append(one)

    def _keep(self, partition: int, key: bytes, why: str) -> None:
        text = key.decode(errors="replace") or f"all of partition {partition}"
        log.warning("not_released", partition=partition, key=text, why=why)
        self._released.kept[text] = why


class Releases:
    """Bounded."""

    def __init__(self) -> None:
        self._releases: list[_Release] = []

    def __len__(self) -> int:
        return len(self._releases)

    def add(self, key: bytes, partitions: Iterable[int], until: float) -> Future[Released]:
        """Releases `key` of these partitions, or all their keys where it is empty.

        Answers when that is done, and at `until` (monotonic seconds) at the latest. Raises `Unanswered` when too many are under
        way.
        """
        if len(self._releases) >= RELEASES_MAX:
            raise Unanswered("too many releases are under way")
        release = _Release(key, partitions, until)
        self._releases.append(release)
        return release.answer

    def turn(self, working: Mapping[int, Working]) -> None:
        """Each release takes its turn. `working` are the partitions at work."""
        for release in self._releases:
            release.turn(working)
        self._releases = [release for release in self._releases if not release.is_over]
