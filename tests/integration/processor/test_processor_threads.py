"""Whichever thread of a slot dies: the process ends, with code 1 and a last line that says why."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from shared.topics import Topic
from tests.integration.parts.brokers import OF_VIEWS
from tests.integration.parts.slots import Slot, wait_until
from tests.integration.processor.broken_slot import WORK

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_VIEWS


def test_the_death_of_any_thread_ends_the_slot(broker: Broker, tmp_path: Path) -> None:
    sign = tmp_path / "die"
    slots = {
        name: Slot(
            broker.bootstrap,
            tmp_path,
            number,
            program=("tests.integration.processor.broken_slot", name, str(sign)),
            PROCESSOR_STANDBYS="1",
            PROCESSOR_LOOKUP_HOST="127.0.0.1",
            PROCESSOR_LOOKUP_PORT=str(free_port()),
            PROCESSOR_LOOKUP_TOKEN="a token of sixteen or more",
        )
        for number, name in enumerate(WORK)
    }
    try:
        for slot in slots.values():
            slot.start()
        wait_until(lambda: all(slot.is_ready() for slot in slots.values()), "all slots work", 120)
        sign.touch()
        for name, slot in slots.items():
            assert slot.ended() == 1, slot.log_tail()
            last = json.loads(slot.last_line())
            assert last["event"] == "failed"
            assert last["error"] == f"thread {name} died: LookupError: broken by a test"
    finally:
        for slot in slots.values():
            slot.end()
