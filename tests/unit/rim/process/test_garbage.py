"""Searches for reference cycles: the request that they interrupt is not charged with them."""

import gc
import threading
from collections.abc import Iterator

import pytest

from services.rim.process import garbage


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As after the start-up of a service, without its thresholds."""
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    before = list(gc.callbacks)
    # A test of a whole service may have begun it.
    gc.callbacks[:] = others = [one for one in before if one is not garbage._note]
    garbage.look_seldom()
    garbage.look_seldom()
    assert gc.callbacks == [*others, garbage._note]
    yield
    gc.callbacks[:] = before


@pytest.mark.usefixtures("looked")
def test_a_search_is_no_work_of_the_thread_that_it_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]

    def ticking() -> float:
        clock[0] += 1.0
        return clock[0]

    monkeypatch.setattr(garbage, "thread_time", ticking)
    begun = garbage.work_seconds()
    gc.collect()
    # The clock was read twice by the search, and once here: of the two seconds, one was between its begin and its end.
    assert garbage.work_seconds() - begun == 2.0
    found: list[float] = []
    other = threading.Thread(target=lambda: found.append(garbage.work_seconds()))
    other.start()
    other.join()
    assert found == [clock[0]], "a thread has its own searches"
