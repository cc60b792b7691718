"""Queries of a partition: they see what is committed, and the number of the commit says when to ask again."""

import pytest

from services.processor.engine.application.requests import CommittedRows, Query
from services.processor.runtime.partition.transaction import Unclear
from services.processor.runtime.questions import Unanswered
from tests.unit.processor.engine.counting import COUNTS
from tests.unit.processor.runtime.partition.test_partition import Scene, record


def count(rows: CommittedRows, key: bytes) -> bytes | None:
    found = rows.get(COUNTS, key)
    return None if found is None else str(found).encode()


COUNT = Query("count", count)


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
