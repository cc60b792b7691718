"""Faults for the slots of a run, their standbys and the broker, drawn from a seeded deck, one after the other."""

import random
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

from deploy.local.broker import Broker
from tests.integration.parts.slots import Slot

SLOTS_MIN: Final = 2
SLOTS_MAX: Final = 5
#: `max.poll.interval.ms` of a slot; a pause beyond it is past every time-out there is.
POLL_INTERVAL_SECONDS: Final = 20.0

KILL, KILL_TWO, KILL_AWAY, KILL_WIPED = (
    "kill -9",
    "kill -9 of two",
    "kill -9, back after the session",
    "kill -9, disk lost",
)
PAUSE, PAUSE_LONG, PAUSE_LONGEST = "SIGSTOP, short", "SIGSTOP past the session", "SIGSTOP past every time-out"
KILL_IN_PAUSE = "kill -9 while another is stopped"
RESTART, ADD, REMOVE = "SIGTERM and restart", "slot added", "slot removed"
HOME_AWAY, STANDBY_KILL = "home dies, standby takes over", "standby killed"
BROKER_KILL, BROKER_STOP = "broker killed and restarted", "broker stopped for a time"

#: What is drawn before it is shuffled again: so each kind comes, and none is left to luck.
_DECK: Final = (
    *(KILL, KILL, KILL, KILL_TWO, KILL_AWAY, KILL_WIPED),
    *(PAUSE, PAUSE, PAUSE_LONG, PAUSE_LONG, KILL_IN_PAUSE),
    *(RESTART, RESTART, ADD, ADD, REMOVE, REMOVE),
)
_STANDBY_FAULTS: Final = (HOME_AWAY, HOME_AWAY, STANDBY_KILL)
_BROKER_FAULTS: Final = (BROKER_KILL, BROKER_STOP)
#: The slot that has a standby, where one has; it is never removed.
STANDBY_OF: Final = 0
#: What a standby bears before it takes over, and then some.
SUSPECT_SECONDS: Final = 1.5

#: How the last line of a slot that found the broker away when it started begins to say so.
NO_BROKER: Final = '"error": "no broker '
#: What the last line of a slot says that the group has fenced without another process. A broker that was stopped may hold a
#: request to join that its client has given up: carried out later, it fences the client's next one.
DROPPED: Final = '"error": "the group has dropped this process'
#: What the last line of a slot says that could open no file. It cannot go on without its store: its supervisor starts it again.
#: As a process says it that has no descriptor left; the second is of one whose libraries are being loaded.
NO_FILES: Final = ("Too many open files", "cannot open shared object file: Error 24")

#: The long pause outlasts a short run.
LONG_RUN_SECONDS: Final = 300.0


class Fleet:
    """The slots of a run, the running ones and those to come. `make` makes a slot of a number; nothing else is touched.

    `standby` is another process, which stands by for slot `STANDBY_OF`. `broker` is killed and stopped only where it is given.
    """

    def __init__(
        self,
        make: Callable[[int], Slot],
        slots: int,
        session_seconds: float,
        *,
        standby: Slot | None = None,
        broker: Broker | None = None,
    ) -> None:
        self._make = make
        self._session_seconds = session_seconds
        self._standby = standby
        self._broker = broker
        self._brokers_fail = broker is not None
        self.slots: dict[int, Slot] = {}
        self._running: set[int] = set()
        #: Exit codes of the processes that were stopped, and those that ended by themselves.
        self.exits: Counter[int] = Counter()
        self.ended_unexpectedly: list[str] = []
        #: How often one that was starting gave up waiting for the broker, which was away, and logged it.
        self.found_no_broker = 0
        #: How often one ended, amid faults of the broker, since another process had its id.
        self.replaced = 0
        #: Slots whose descriptors were used up by a fault, and how often one ended for it.
        self.without_descriptors: set[int] = set()
        self.ended_without_descriptors = 0
        for number in range(slots):
            self._start(number)
        if standby is not None:
            standby.start()

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of which faults a run draws, as often as they stand here."""
        standby_faults = _STANDBY_FAULTS if self._standby is not None else ()
        return (*_DECK, *standby_faults, *(_BROKER_FAULTS if self._broker is not None else ()))

    @property
    def processes(self) -> list[Slot]:
        """All that ever ran."""
        return [*self.slots.values(), *([self._standby] if self._standby is not None else [])]

    @property
    def running(self) -> list[int]:
        """The slots that should run."""
        return sorted(self._running)

    def look(self) -> None:
        """Notes slots that ended by themselves, and starts them again, as a supervisor would."""
        for number in self.running:
            slot = self.slots[number]
            if not slot.is_running:
                self._start_again(slot)
        if self._standby is not None and not self._standby.is_running:
            self._start_again(self._standby)

    def _start_again(self, slot: Slot) -> None:
        if self._brokers_fail and NO_BROKER in slot.last_line():
            self.found_no_broker += 1
        elif self._brokers_fail and DROPPED in slot.last_line():
            self.replaced += 1
        elif slot.number in self.without_descriptors and any(one in slot.last_line() for one in NO_FILES):
            self.ended_without_descriptors += 1
        else:
            self.ended_unexpectedly.append(f"slot {slot.number}: {slot.log_tail()[-600:]}")
        slot.start()

    def all_ready(self) -> bool:
        """Whether every running slot works all it has."""
        self.look()
        is_standing_by = self._standby is None or self._standby.is_ready()
        return is_standing_by and all(self.slots[number].is_ready() for number in self.running)

    def stop(self) -> None:
        """SIGTERM to every slot, one after the other; to the standby first, or it would take over."""
        if self._standby is not None:
            self.exits[self._standby.terminate()] += 1
        for number in self.running:
            self._terminate(number)

    def end(self) -> None:
        """Makes sure that none is left, in any state."""
        for slot in self.processes:
            slot.end()

    def is_ready_for(self, kind: str) -> bool:
        """Whether this fault would begin at once."""
        del kind
        return True

    def inject(self, kind: str, chance: random.Random) -> bool:
        """Carries out a fault; False where it cannot be (too few or too many slots)."""
        if kind in {ADD, REMOVE}:
            return self._add() if kind == ADD else self._remove(chance)
        if kind in {BROKER_KILL, BROKER_STOP}:
            return self._inject_into_broker(kind, chance)
        if kind in {HOME_AWAY, STANDBY_KILL}:
            return self._inject_into_standby(kind, chance)
        first, second = chance.sample(self.running, 2)
        long_seconds = self._session_seconds + chance.uniform(1.0, 3.0)
        if kind in {KILL, KILL_WIPED}:
            self.slots[first].kill()
            if kind == KILL_WIPED:
                shutil.rmtree(self.slots[first].state_dir, ignore_errors=True)
            self.slots[first].start()
        elif kind == KILL_TWO:
            for number in (first, second):
                self.slots[number].kill()
            for number in (first, second):
                self.slots[number].start()
        elif kind == KILL_AWAY:
            self.slots[first].kill()
            let_pass(long_seconds)
            self.slots[first].start()
        elif kind == RESTART:
            self._terminate(first)
            self._start(first)
        elif kind == KILL_IN_PAUSE:
            self.slots[first].pause()
            let_pass(long_seconds / 2)
            self.slots[second].kill()
            self.slots[second].start()
            let_pass(long_seconds / 2)
            self.slots[first].wake()
        else:
            seconds = {
                PAUSE: chance.uniform(0.2, 2.5),
                PAUSE_LONG: long_seconds,
                PAUSE_LONGEST: POLL_INTERVAL_SECONDS + 2,
            }[kind]
            self.slots[first].pause()
            let_pass(seconds)
            self.slots[first].wake()
        return True

    def _inject_into_broker(self, kind: str, chance: random.Random) -> bool:
        assert self._broker is not None
        if kind == BROKER_KILL:
            self._broker.kill()
            let_pass(chance.uniform(0.0, 2.0))
            self._broker.start()
        else:
            self._broker.child.signal(signal.SIGSTOP)
            let_pass(chance.uniform(0.5, self._session_seconds + 2.0))
            self._broker.child.signal(signal.SIGCONT)
        return True

    def _inject_into_standby(self, kind: str, chance: random.Random) -> bool:
        assert self._standby is not None
        if kind == HOME_AWAY:
            home = self.slots[STANDBY_OF]
            home.kill()
            let_pass(SUSPECT_SECONDS + chance.uniform(0.0, 4.0))
            home.start()
        else:
            self._standby.kill()
            self._standby.start()
        return True

    def _add(self) -> bool:
        if len(self._running) >= SLOTS_MAX:
            return False
        self._start(min(set(range(SLOTS_MAX)) - self._running))
        return True

    def _remove(self, chance: random.Random) -> bool:
        if len(self._running) <= SLOTS_MIN:
            return False
        self._terminate(chance.choice([number for number in self.running if not self._has_standby(number)]))
        return True

    def _has_standby(self, number: int) -> bool:
        return self._standby is not None and number == STANDBY_OF

    def _start(self, number: int) -> None:
        if number not in self.slots:
            self.slots[number] = self._make(number)
        self.slots[number].start()
        self._running.add(number)

    def _terminate(self, number: int) -> None:
        self._running.discard(number)
        self.exits[self.slots[number].terminate()] += 1


def let_pass(seconds: float) -> None:
    """How long a fault lasts is part of the fault: nothing is awaited here."""
    threading.Event().wait(seconds)
