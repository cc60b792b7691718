"""How many timers wait: the count that operators see."""

import random

from services.processor.engine.state.local import MemoryStore
from services.processor.engine.state.timers import WAITING_MAX, Timers


def test_due_timers_are_counted_and_the_others_are_not() -> None:
    timers = Timers(MemoryStore())
    chosen = random.Random(1)
    deadlines = [chosen.randrange(1_000) for _ in range(3_000)]
    for number, deadline_ms in enumerate(deadlines):
        timers.set(str(number).encode(), deadline_ms)
    for clock_ms in (0, 1, 500, 999, 2_000):
        assert timers.waiting(clock_ms) == sum(deadline_ms <= clock_ms for deadline_ms in deadlines)
    assert len(list(timers.take_due(400, 100))) == sum(deadline_ms <= 400 for deadline_ms in deadlines)
    assert timers.waiting(500) == sum(400 < deadline_ms <= 500 for deadline_ms in deadlines)


def test_of_a_million_that_wait_no_more_are_looked_at_than_are_counted() -> None:
    timers = Timers(MemoryStore())
    for number in range(3 * WAITING_MAX):
        timers.set(str(number).encode(), 1)
    assert timers.waiting(1) == WAITING_MAX
