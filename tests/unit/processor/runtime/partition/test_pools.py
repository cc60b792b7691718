"""The threads of a slot: what hangs of one partition holds up no other."""

import threading
from concurrent.futures import Executor, wait
from pathlib import Path

import pytest

from services.processor.runtime.partition.pools import COMMIT_THREADS, TAKEOVER_THREADS, Pools
from services.processor.runtime.plan import Plan
from services.processor.settings import ProcessorSettings
from tests.unit.processor.engine.counting import APPLICATION

SECONDS_MAX = 60.0


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "hanging"), [("commits", 3 * COMMIT_THREADS), ("takeovers", 3 * TAKEOVER_THREADS)])
def test_partitions_whose_broker_hangs_do_not_hold_up_the_others(kind: str, hanging: int) -> None:
    """Three quarters of 64 partitions hang; the commits, flushes, takeovers and closes of the rest go on."""
    pools = Pools.start(Plan(ProcessorSettings(slot="test/0", state_dir=Path("unused")), APPLICATION))
    pool: Executor = getattr(pools, kind)
    hang = threading.Event()
    stuck = [pool.submit(hang.wait) for _ in range(hanging)]
    try:
        for _ in range(3):
            others = [pool.submit(int, number) for number in range(16)]
            assert not wait(others, SECONDS_MAX).not_done
        assert not any(one.done() for one in stuck)
    finally:
        hang.set()
        pools.close()
