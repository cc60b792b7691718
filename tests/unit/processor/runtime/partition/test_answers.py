"""Queries of a partition: they see what is committed, and the number of the commit says when to ask again."""

import pytest

from services.processor.engine.application.application import Lookup
from services.processor.engine.application.requests import CommittedRows, Query
from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition.transaction import Unclear
from services.processor.runtime.questions import Unanswered
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import COUNTS
from tests.unit.processor.runtime.partition.scene import Scene, record


def count(rows: CommittedRows, key: bytes) -> bytes | None:
    found = rows.get(COUNTS, key)
    return None if found is None else str(found).encode()


COUNT = Query("count", count)
LOOKUP = Lookup("/counts/{key}", lambda _: (), count)
ENDS = {BEACONS.name: End(0, 1e9)}


def test_a_commit_is_seen_once_its_outcome_was_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    working = scene.working
    assert (working.answers.ask(COUNT, b"a"), working.commit_number) == (None, 0)
    scene.threads.is_holding = True
    scene.accept(record(0), record(1))
    scene.step()
    assert (working.answers.ask(COUNT, b"a"), working.commit_number) == (None, 0), "it is in flight"
    scene.threads.go_on()
    scene.step()
    assert (working.answers.ask(COUNT, b"a"), working.commit_number) == (b"2", 1)


@pytest.mark.parametrize("is_lookup", [True, False])
def test_no_answer_is_taken_back_when_the_outcome_of_a_commit_is_unknown(
    monkeypatch: pytest.MonkeyPatch, is_lookup: bool
) -> None:
    """The next owner has what was committed: nothing newer was ever answered."""
    scene = Scene(monkeypatch)

    def answer() -> bytes | None:
        answers = scene.working.answers
        return answers.look(LOOKUP, b"a", ENDS).json if is_lookup else answers.ask(COUNT, b"a")

    scene.accept(record(0))
    scene.step()
    scene.step()
    assert answer() == b"1"
    scene.threads.is_holding = True
    scene.broker.answers = [Unclear("nobody knows")]
    scene.accept(record(1), record(2))
    scene.step()
    assert answer() == b"1", "what is in flight may never be committed"
    scene.threads.is_holding = False
    scene.threads.go_on()
    scene.step()
    scene.step()
    assert scene.broker.takeovers == 2


def test_a_partition_that_is_being_taken_over_has_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.broker.answers = [Unclear("nobody knows")]
    scene.accept(record(0))
    scene.step()
    scene.threads.is_holding = True
    scene.step()
    assert scene.partition.working is None


def test_a_partition_has_no_answers_while_a_record_is_being_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1, b"poison"))
    scene.step()
    with pytest.raises(Unanswered, match="rejected"):
        _ = scene.working.answers
    scene.threads.go_on()
    scene.threads.is_holding = False
    for _ in range(4):
        scene.step()
    assert scene.working.answers.ask(COUNT, b"a") == b"1"
