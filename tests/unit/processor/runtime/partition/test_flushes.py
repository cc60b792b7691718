"""Flushes: what a slot does not wait for."""

import threading
from concurrent.futures import ThreadPoolExecutor

from services.processor.engine.core.core import Core
from services.processor.engine.state.local import MemoryStore
from services.processor.runtime.partition.flushes import Flushes
from services.processor.runtime.partition.transaction import Durable
from tests.unit.processor.engine.core.test_core import record
from tests.unit.processor.engine.counting import APPLICATION


def test_a_flush_that_has_no_thread_is_not_waited_for() -> None:
    """All threads may be stuck in a client that never comes back."""
    local = MemoryStore()
    core = Core(APPLICATION, 0, local)
    core.fold([record(0)])
    core.cut()
    core.commit()
    stuck = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(stuck.wait)
        flushes = Flushes(0, pool, interval_seconds=0.0)
        flushes.begin_when_due(core, local, Durable(1, 0), bytes_max=1)
        flushes.abandon()
        stuck.set()
    assert local.position() is None
