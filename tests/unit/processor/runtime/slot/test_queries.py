"""What the slot's loop answers for a partition in each of its states."""

from types import SimpleNamespace
from typing import Any

import pytest

from services.processor.engine.application.application import Lookup
from services.processor.engine.application.requests import Query
from services.processor.runtime.questions import Looked, Unanswered
from services.processor.runtime.slot.partitions import Partitions
from services.processor.runtime.slot.queries import SlotQueries
from services.processor.runtime.telemetry.status import Usage

LOOKUP = Lookup("/counts/{key}", lambda _: (), lambda _rows, _key: None)
QUERY = Query("count", lambda _rows, _key: None)
LOOKED = Looked(b"1", 0.0, 0)


class Working:
    """Stands in for `partition.working.Working`: it has one answer to all."""

    commit_number = 3

    def __init__(self) -> None:
        self.answers = SimpleNamespace(look=lambda *_: LOOKED, ask=lambda *_: b"1")


def queries(states: dict[int, Working | None]) -> SlotQueries:
    partitions = Partitions.__new__(Partitions)
    partitions._by_number = {number: SimpleNamespace(working=state) for number, state in states.items()}  # type: ignore[misc]
    ends: Any = SimpleNamespace(of=lambda _topics, _number: {})
    return SlotQueries("test/0", ["beacons"], partitions, ends, Usage(), member_id=lambda: "me")


def test_a_partition_at_work_answers_with_the_member_id() -> None:
    asked = queries({5: Working()})
    assert asked.look(LOOKUP, b"a", 5) == (LOOKED, "me")
    assert asked.ask(QUERY, b"a", 5) == (b"1", "me")
    assert (asked.has(5), asked.has(6)) == (True, False)


@pytest.mark.parametrize(("number", "why"), [(5, "being taken"), (6, "another slot's")])
def test_a_partition_in_any_other_state_has_no_answer(number: int, why: str) -> None:
    asked = queries({5: None})
    with pytest.raises(Unanswered, match=why):
        asked.look(LOOKUP, b"a", number)
    with pytest.raises(Unanswered, match=why):
        asked.ask(QUERY, b"a", number)


def test_a_watch_ends_when_its_partition_is_not_at_work_any_more() -> None:
    states: dict[int, Working | None] = {5: Working()}
    asked = queries(states)
    states[5].answers.ask = lambda *_: None  # type: ignore[union-attr]
    answer = asked.watch(QUERY, b"a", 5, until=1e12)
    asked.turn()
    assert not answer.done()
    del asked._partitions._by_number[5]
    asked.turn()
    with pytest.raises(Unanswered, match="another slot's"):
        answer.result(0)
