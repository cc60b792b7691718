"""A partition asked by requests: what is committed is told, and the number of the commit says when to ask again."""

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


def test_what_a_commit_holds_is_told_once_its_outcome_was_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    partition = scene.partition
    assert (partition.ask(COUNT, b"a"), partition.commit_number) == (None, 0)
    scene.threads.is_holding = True
    scene.accept(record(0), record(1))
    scene.step()
    assert (partition.ask(COUNT, b"a"), partition.commit_number) == (None, 0), "it is in flight"
    scene.threads.go_on()
    scene.step()
    assert (partition.ask(COUNT, b"a"), partition.commit_number) == (b"2", 1)


def test_nobody_is_told_anything_while_the_partition_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.broker.answers = [Unclear("nobody knows")]
    scene.accept(record(0))
    scene.step()
    scene.threads.is_holding = True
    scene.step()
    assert scene.partition.commit_number is None
    with pytest.raises(Unanswered, match="being taken"):
        scene.partition.ask(COUNT, b"a")


def test_nobody_is_told_anything_while_a_record_is_being_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1, b"poison"))
    scene.step()
    with pytest.raises(Unanswered, match="rejected"):
        scene.partition.ask(COUNT, b"a")
    scene.threads.go_on()
    scene.threads.is_holding = False
    for _ in range(4):
        scene.step()
    assert scene.partition.ask(COUNT, b"a") == b"1"
