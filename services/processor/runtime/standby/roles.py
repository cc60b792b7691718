"""Roles: each replica decides from the heartbeats which replica of a slot is active. Pure.

A wrong decision costs a hand-over and never a row. The replica that joins the group last under the slot's static id has its
partitions, and the producers of the others are fenced.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from services.rim.admin.admin import Check
from shared.schemas.presence import Presence


@dataclass(frozen=True)
class Heard:
    """The last heartbeat of a replica, and when it was read (monotonic seconds)."""

    beat: Presence
    at: float


@dataclass(frozen=True)
class RoleTimeouts:
    """How long silence is borne, in seconds."""

    #: An active replica without a heartbeat for this long counts as dead.
    suspect: float = 1.5
    #: What each standby waits more than the one before it, so that they do not all jump.
    rank: float = 1.0
    #: What the replica at home waits at its start, to hear whether another works for it.
    listen: float = 0.7
    #: A copy this close behind (records) can take over.
    lag_records_max: int = 10_000
    #: How long the home replica is a caught-up standby before the slot is handed back to it.
    settle: float = 10.0
    #: What a caught-up home replica waits for its slot beyond that, until it is ready without it: nobody seems to hand back.
    overdue: float = 60.0


def may_go_active(
    replica: int, others: Mapping[int, Heard], *, now: float, listening_since: float, timeouts: RoleTimeouts
) -> bool:
    """Whether a standby takes the slot. `listening_since`: since when it has read all heartbeats."""
    last_heard = listening_since
    for heard in others.values():
        if heard.beat.role == "handing_over" and heard.beat.successor == replica and heard.at >= listening_since:
            return True
        if heard.beat.role != "standby":
            last_heard = max(last_heard, heard.at)
    if replica == 0 and last_heard == listening_since:
        return now - listening_since >= timeouts.listen
    return now - last_heard >= timeouts.suspect + timeouts.rank * max(0, replica - 1)


def last_at_work(others: Mapping[int, Heard]) -> Presence | None:
    """The newest heartbeat of a replica that works the slot or hands it over; None without one.

    The last heartbeat of a replica that died says for ever that it works the slot.
    """
    at_work = [heard for heard in others.values() if heard.beat.role != "standby"]
    return max(at_work, key=lambda heard: heard.at).beat if at_work else None


def successor(
    others: Mapping[int, Heard], partitions: frozenset[int], *, now: float, timeouts: RoleTimeouts
) -> int | None:
    """The first standby that lives and has a fresh copy of all `partitions`; None without one."""
    for replica in sorted(others):
        heard = others[replica]
        if _is_standing_by(heard, now, timeouts) and _is_fresh(heard.beat.lags, partitions, timeouts):
            return replica
    return None


class HomeReadiness:
    """Whether a replica that stands by is ready. The home replica is not, while another works its slot.

    Who restarts or drains slots one after the other goes on when one is ready. The next one takes the standby along that works this
    one's slot, so that has to be at home again, or no copy is warm. A slot that is not handed back though it could be must not hold
    up everything: then home is ready, `overdue` seconds later.
    """

    def __init__(self, replica: int, timeouts: RoleTimeouts) -> None:
        self._replica = replica
        self._timeouts = timeouts
        self._fresh_since: float | None = None

    def check(self, others: Mapping[int, Heard], lags: Mapping[int, int], now: float) -> Check:
        """`lags`: of the copies here, in records, by partition."""
        if self._replica > 0:
            return Check(ok=True, why="standing by")
        at_work = last_at_work(others)
        active = at_work if at_work is not None and at_work.role == "active" else None
        if active is None or not _is_fresh(lags, frozenset(active.partitions), self._timeouts):
            self._fresh_since = None
            return Check(ok=False, why="starting" if active is None else f"replica {active.replica} works the slot")
        self._fresh_since = self._fresh_since or now
        is_overdue = now - self._fresh_since >= self._timeouts.settle + self._timeouts.overdue
        why = f"replica {active.replica} works the slot, and is to hand it back"
        return Check(is_overdue, f"standing by: {why}" if is_overdue else why)


def standbys(everyone: Iterable[Heard], partition: int, *, now: float, timeouts: RoleTimeouts) -> list[Presence]:
    """The standbys that live and have a copy of `partition`, the freshest first."""
    found = [heard.beat for heard in everyone if _is_standing_by(heard, now, timeouts) and partition in heard.beat.lags]
    return sorted(found, key=lambda beat: beat.lags[partition])


def _is_fresh(lags: Mapping[int, int], partitions: frozenset[int], timeouts: RoleTimeouts) -> bool:
    """Whether these copies can take the partitions over."""
    return partitions <= lags.keys() and sum(lags[each] for each in partitions) <= timeouts.lag_records_max


def _is_standing_by(heard: Heard, now: float, timeouts: RoleTimeouts) -> bool:
    return heard.beat.role == "standby" and now - heard.at < timeouts.suspect
