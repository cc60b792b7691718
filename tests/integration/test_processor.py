"""The processor on a real broker: every view once, whatever is killed."""

import random
from pathlib import Path

import pytest

from deploy.local.broker import Broker
from tests.integration.feed import FINISH, Feed, Rows, expect
from tests.integration.slots import Slot, wait_until

pytestmark = pytest.mark.integration


def test_every_view_is_finished_once_through_kills_pauses_and_handovers(own_broker: Broker, tmp_path: Path) -> None:
    slots = [Slot(own_broker.bootstrap, tmp_path, number, **FINISH) for number in range(2)]
    feed = Feed(own_broker.bootstrap, views=300, seconds=24, seed=5)
    rows = Rows(own_broker.bootstrap)
    try:
        for slot in slots:
            slot.start()
        wait_until(lambda: all(slot.is_ready() for slot in slots), "both slots are ready")
        feed.start()
        time_of_faults = random.Random(11)
        for fault in ("kill", "pause", "terminate", "kill"):
            feed.join(time_of_faults.uniform(2.0, 4.0))
            slot = time_of_faults.choice(slots)
            if fault == "pause":
                # Longer than the session: its partitions move, and it wakes as a zombie.
                slot.pause()
                feed.join(8)
                slot.wake()
                continue
            if fault == "kill":
                slot.kill()
            else:
                assert slot.terminate() == 0, slot.log_tail()
            slot.start()
        feed.finish()
        expect(feed.truth, feed.repeats, rows, seconds=90)
        for slot in slots:
            assert slot.terminate() == 0, slot.log_tail()
    finally:
        rows.close()
        for slot in slots:
            slot.end()
