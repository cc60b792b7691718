"""A record that the application cannot fold is rejected after one rewind, and holds up no other."""

import pytest

from services.processor.engine.application.application import Lookup
from services.processor.engine.record import Record
from services.processor.runtime.partition.transaction import Aborted
from services.processor.runtime.questions import Unanswered
from shared.topics import BEACONS
from tests.unit.processor.runtime.partition.scene import Scene, record

LOOKUP = Lookup("/counts/{key}", lambda _: (), lambda _rows, _key: None)


def test_a_poison_record_is_rejected_after_one_rewind(scene: Scene) -> None:
    scene.accept(record(0), record(1, b"poison"), record(2))
    scene.step()
    scene.accept(record(0), record(1, b"poison"), record(2))
    scene.step()
    scene.step()
    assert sum(checkpoint.rejected.get("fold_failed", 0) for checkpoint in scene.broker.committed) == 1
    assert sum(checkpoint.records for checkpoint in scene.broker.committed) == 3


def test_a_poison_record_waits_for_the_commit_in_flight_without_holding_the_loop(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1, b"poison"), record(2))
    for _ in range(3):
        scene.step()
    # All that time the other partitions had their turns.
    assert scene.rewinds == [None]
    with pytest.raises(Unanswered, match="rejected"):
        scene.working.answers.look(LOOKUP, b"a", {})
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.step()
    assert scene.rewinds == [None, 1]
    scene.accept(record(1, b"poison"), record(2))
    scene.step()
    scene.step()
    assert [checkpoint.rejected for checkpoint in scene.broker.committed] == [{}, {"fold_failed": 1}]
    assert scene.broker.committed[-1].meta.next_offsets == {BEACONS.name: 3}


@pytest.mark.thorough
def test_poison_that_waits_for_a_commit_that_is_aborted_is_met_again(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.broker.answers = [Aborted("ILLEGAL_GENERATION: by the test", "ILLEGAL_GENERATION")]
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1, b"poison"))
    scene.step()
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.step()
    for _ in range(2):
        scene.accept(record(0), record(1, b"poison"))
        scene.step()
        scene.step()
    assert sum(checkpoint.rejected.get("fold_failed", 0) for checkpoint in scene.broker.committed) == 1
    assert sum(checkpoint.records for checkpoint in scene.broker.committed) == 2


def test_a_row_that_cannot_fire_while_a_commit_is_aborted_is_due_again(scene: Scene) -> None:
    scene.accept(Record(BEACONS.name, 0, 0, 1_000, b"unfinishable", b""))
    scene.step()
    scene.step()
    scene.threads.is_holding = True
    scene.broker.answers = [Aborted("ILLEGAL_GENERATION: by the test", "ILLEGAL_GENERATION")]
    scene.accept(record(1, at_ms=1_050))
    scene.step()
    scene.accept(record(2, at_ms=2_000))
    scene.step()
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.step()
    for _ in range(2):
        scene.accept(record(1, at_ms=1_050), record(2, at_ms=2_000))
        scene.step()
        scene.step()
    assert sum(checkpoint.rejected.get("fire_failed", 0) for checkpoint in scene.broker.committed) == 1
    assert scene.broker.committed[-1].meta.next_offsets == {BEACONS.name: 3}


def test_a_partition_given_up_amid_poison_leaves_it_to_the_successor(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1), record(2, b"poison"))
    scene.step()
    scene.threads.go_on()
    scene.threads.is_holding = False
    assert not scene.close()
    (checkpoint,) = scene.broker.committed
    assert checkpoint.meta.next_offsets == {BEACONS.name: 1}
