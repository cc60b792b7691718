"""When faults come and which: a seeded deck, and a pace that holds however long single faults take."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from tests.chaos.faults import LONG_RUN_SECONDS, PAUSE_LONGEST, Fleet, let_pass

_HOUR_SECONDS: Final = 3_600.0


class Deck:
    """The order of faults, the same for the same seed but for those that must wait."""

    def __init__(self, chance: random.Random, kinds: Iterable[str], run_seconds: float) -> None:
        self._chance = chance
        self._kinds = [*kinds, PAUSE_LONGEST] if run_seconds >= LONG_RUN_SECONDS else list(kinds)
        self._left: list[str] = []

    def draw(self, is_ready: Callable[[str], bool]) -> str:
        """The next kind that is ready; if none is, the next."""
        if not self._left:
            self._left = self._chance.sample(self._kinds, len(self._kinds))
        ready = next((place for place in reversed(range(len(self._left))) if is_ready(self._left[place])), -1)
        return self._left.pop(ready)

    def gap_seconds(self) -> float:
        """How long the slots are left alone: often so short that they have not recovered yet."""
        return self._chance.uniform(0.0, 0.7) if self._chance.random() < 0.4 else self._chance.uniform(1.0, 5.0)


class Pace:
    """Shortens the gaps between faults so that so many are injected in an hour; 0 leaves the gaps as they are."""

    def __init__(self, faults_per_hour: float) -> None:
        self._seconds_each = _HOUR_SECONDS / faults_per_hour if faults_per_hour else 0.0

    def gap_seconds(self, drawn: float, injected: int, passed_seconds: float) -> float:
        """What of the gap there is time for: none while faults are behind their schedule."""
        if not self._seconds_each:
            return drawn
        return min(drawn, max(0.0, (injected + 1) * self._seconds_each - passed_seconds))


def run_faults(
    fleet: Fleet, seed: int, seconds: float, check: Callable[[], None], faults_per_hour: float = 0.0
) -> Counter[str]:
    """Injects faults into the fleet for `seconds`; how many of each kind were injected. `check` is called between them."""
    chance = random.Random(seed)
    deck, pace = Deck(chance, fleet.kinds, seconds), Pace(faults_per_hour)
    injected: Counter[str] = Counter()
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        let_pass(pace.gap_seconds(deck.gap_seconds(), injected.total(), time.monotonic() - begin))
        fleet.look()
        check()
        kind = deck.draw(fleet.is_ready_for)
        if fleet.inject(kind, chance):
            injected[kind] += 1
    return injected
