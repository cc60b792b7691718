"""Replica: one process of a slot. It runs the slot while it is active, and keeps warm copies while it is a standby.

Without standbys a slot has one replica, always active. With them, the replica at home (0) and those on other hosts share the
slot's static id in the group. The replica that joins last has its partitions at once, and no partitions of other slots move.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

from services.processor.runtime.kafka.refusals import SlotFenced
from services.processor.runtime.plan import Plan
from services.processor.runtime.slot.fencing import outcome_of
from services.processor.runtime.slot.worker import Worker
from services.processor.runtime.standby.copies import Standby
from services.processor.runtime.standby.heartbeats import UNHEARD_SECONDS_MAX, Heartbeats
from services.processor.runtime.standby.roles import (
    HomeReadiness,
    RoleTimeouts,
    last_at_work,
    may_go_active,
    standbys,
    successor,
)
from services.processor.runtime.store.rocksdb import RocksStore
from services.processor.runtime.store.stores import Stores
from services.processor.runtime.telemetry import gauges
from services.rim.admin.admin import Check
from shared.schemas.presence import Presence

log = structlog.get_logger(__name__)

#: How long a replica that handed over waits for a heartbeat of its successor at work.
SUCCESSOR_SECONDS_MAX: Final = 3.0
SUCCESSOR_POLL_SECONDS: Final = 0.02
_STARTING: Final = Check(ok=False, why="starting")


class Replica:
    """Takes the roles of a slot in turn, until stopped."""

    def __init__(self, plan: Plan, timeouts: RoleTimeouts, check: Callable[[], None]) -> None:
        """`check` is called in every turn of the loop; what it raises ends the replica's work."""
        self._plan = plan
        self._check = check
        self._timeouts = timeouts
        self._stores = Stores(plan)
        self._heartbeats: Heartbeats | None = None
        if plan.settings.standbys:
            self._heartbeats = Heartbeats(
                plan.settings,
                plan.application.id,
                plan.slot,
                plan.settings.replica,
                plan.lookup_url,
                refused_seconds_max=plan.settings.refused_ms_max / 1000,
            )
        self._worker: Worker | None = None
        self._standby: Standby | None = None
        self._turned_at = time.monotonic()
        self._lags: dict[int, int] = {}
        #: While it stands by: whether it is ready. Another thread asks.
        self._standing_by = _STARTING
        self._home_ready_since: float | None = None
        self._is_clean = True

    # Health.

    def is_alive(self) -> Check:
        """Whether the loop turns."""
        if self._worker is not None:
            return self._worker.is_alive()
        age = time.monotonic() - self._turned_at
        return Check(age < self._plan.settings.poll_interval_ms_max / 1000, f"last turn of the standby {age:.1f} s ago")

    def is_ready(self) -> Check:
        """Whether it does what its role asks."""
        if self._worker is not None:
            return self._worker.is_ready()
        unheard_seconds = 0.0 if self._heartbeats is None else self._heartbeats.unheard_seconds
        if self._standing_by.ok and unheard_seconds > UNHEARD_SECONDS_MAX:
            return Check(
                ok=False, why=f"no heartbeat of its own for {unheard_seconds:.1f} s: it cannot take the slot over"
            )
        return self._standing_by

    # Lookups.

    @property
    def worker(self) -> Worker | None:
        """Who works the slot, while it is active here."""
        return self._worker

    def url_of(self, slot: str) -> str | None:
        """Where the lookups of the replica that works `slot` listen, as its heartbeats say; None where it sends none."""
        if self._heartbeats is None:
            return None
        if slot == self._plan.slot and self._worker is not None:
            return self._plan.lookup_url
        active = [
            heard for heard in self._heartbeats.everyone() if heard.beat.slot == slot and heard.beat.role == "active"
        ]
        return max(active, key=lambda heard: heard.at).beat.url if active else None

    @property
    def standby(self) -> Standby | None:
        """The object that keeps copies while this replica is a standby."""
        return self._standby

    def standby_urls(self, partition: int) -> list[str]:
        """The lookup addresses of other replicas with a copy of `partition`, the most recent copy first."""
        return [beat.url for beat in self._standbys(partition) if beat.url is not None]

    def standby_lag(self, partition: int) -> int | None:
        """How many changelog records the freshest copy of `partition` lacks, here or elsewhere; None without a copy."""
        lags = [beat.lags[partition] for beat in self._standbys(partition)]
        here = self._lags.get(partition)
        return min(lags if here is None else [*lags, here], default=None)

    def _standbys(self, partition: int) -> list[Presence]:
        if self._heartbeats is None:
            return []
        return standbys(self._heartbeats.everyone(), partition, now=time.monotonic(), timeouts=self._timeouts)

    # Roles.

    def run(self, stop: threading.Event) -> bool:
        """Works until `stop` is set. True when everything folded was committed."""
        self._stores.tables.start()
        try:
            return self._run_roles(stop)
        finally:
            self._stores.tables.stop()

    def _run_roles(self, stop: threading.Event) -> bool:
        if self._heartbeats is None:
            self._work(stop, {}, None)
            return self._is_clean
        self._heartbeats.start()
        try:
            while not stop.is_set():
                warm = self._stand_by(stop, self._heartbeats)
                if warm is not None:
                    self._work(stop, warm, self._heartbeats)
        finally:
            self._heartbeats.stop()
        return self._is_clean

    def _stand_by(self, stop: threading.Event, heartbeats: Heartbeats) -> dict[int, RocksStore] | None:
        """Keeps copies until the slot is to be taken; None when stopped before."""
        standby = self._standby = Standby(self._plan, self._stores)
        home_readiness = HomeReadiness(self._plan.settings.replica, self._timeouts)
        warm: dict[int, RocksStore] | None = None
        try:
            while not stop.is_set():
                self._turned_at = time.monotonic()
                self._check()
                others = heartbeats.others()
                at_work = last_at_work(others)
                if at_work is not None:
                    standby.follow(at_work.partitions)
                standby.copy()
                self._stores.tables.turn()
                standby.questions.answer()
                self._show_copies(standby.lags())
                self._standing_by = home_readiness.check(others, self._lags, time.monotonic())
                heartbeats.announce("standby", standby.partitions, lags=self._lags)
                now, since = time.monotonic(), heartbeats.listening_since
                if may_go_active(
                    self._plan.settings.replica, others, now=now, listening_since=since, timeouts=self._timeouts
                ):
                    log.info("going_active", replica=self._plan.settings.replica, copies=sorted(standby.partitions))
                    heartbeats.announce("active", standby.partitions)
                    warm = standby.promote()
                    break
            return warm
        finally:
            self._standing_by = _STARTING
            self._standby = None
            self._show_copies({})
            if warm is None:
                standby.close()
            else:
                # No copy is left in it. To close its client takes long, and who takes the slot over does not wait for it.
                threading.Thread(target=standby.close, name="standby: close").start()

    def _show_copies(self, lags: dict[int, int]) -> None:
        gauges.show_copies(lags, before=self._lags)
        self._lags = lags

    def _work(self, stop: threading.Event, warm: dict[int, RocksStore], heartbeats: Heartbeats | None) -> None:
        worker = self._worker = Worker(self._plan, self._stores, warm)
        self._home_ready_since = None
        chosen: int | None = None
        partitions: frozenset[int] = frozenset()
        fenced: SlotFenced | None = None
        try:
            worker.start()
            while not stop.is_set():
                worker.turn()
                self._check()
                if heartbeats is not None:
                    partitions = worker.partitions
                    heartbeats.announce("active", partitions)
                    chosen = self._find_successor(heartbeats, partitions, chosen)
                    if self._is_home_ready(chosen):
                        break
            if heartbeats is None or chosen is None:
                worker.membership.leave()
            else:
                # A takeover that still runs here could fence the successor: then it hears of the slot when the clients are closed.
                may_tell = worker.is_ready().ok
                worker.membership.hand_over()
                if may_tell:
                    heartbeats.announce("handing_over", partitions, successor=chosen)
        except SlotFenced as error:
            # First: a takeover that still runs here would fence the new owner.
            worker.membership.abandon()
            log.warning("fenced", error=str(error))
            fenced = error
        except BaseException:
            # A core may be in the middle of a record: its changes must not be committed during shutdown.
            worker.membership.abandon()
            raise
        finally:
            self._worker = None
            worker.close()
            self._is_clean = self._is_clean and worker.membership.is_clean
        if heartbeats is None and fenced is not None:
            self._turned_at = time.monotonic()
            raise outcome_of(self._plan, fenced)
        if heartbeats is not None and chosen is not None:
            self._hand_over(heartbeats, partitions, chosen)

    def _hand_over(self, heartbeats: Heartbeats, partitions: frozenset[int], chosen: int) -> None:
        log.info("handing_over", successor=chosen, partitions=sorted(partitions))
        heartbeats.announce("handing_over", partitions, successor=chosen)
        deadline = time.monotonic() + SUCCESSOR_SECONDS_MAX
        while time.monotonic() < deadline:
            heard = heartbeats.others().get(chosen)
            if heard is not None and heard.beat.role == "active":
                return
            time.sleep(SUCCESSOR_POLL_SECONDS)
        log.warning("successor_not_heard", successor=chosen)

    def _find_successor(self, heartbeats: Heartbeats, partitions: frozenset[int], before: int | None) -> int | None:
        found = successor(heartbeats.others(), partitions, now=time.monotonic(), timeouts=self._timeouts)
        if found != before:
            log.info("successor", successor=found, partitions=sorted(partitions))
        return found

    def _is_home_ready(self, chosen: int | None) -> bool:
        """Whether the slot returns to its home replica, which has been a caught-up standby for long enough."""
        if self._plan.settings.replica == 0 or chosen != 0:
            self._home_ready_since = None
            return False
        now = time.monotonic()
        self._home_ready_since = self._home_ready_since or now
        return now - self._home_ready_since >= self._timeouts.settle
