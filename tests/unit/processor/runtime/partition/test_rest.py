"""A partition at rest: the slot's loop leaves it alone until something comes."""

import time

from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition.transaction import Aborted
from services.processor.runtime.plan import Limits
from tests.unit.processor.runtime.partition.scene import Scene, record


def is_at_rest(scene: Scene) -> bool:
    return scene.partition.is_at_rest


def test_a_partition_rests_when_what_it_folded_is_committed_and_not_before(scene: Scene) -> None:
    assert is_at_rest(scene)
    scene.accept(record(0))
    assert not is_at_rest(scene), "a record waits"
    scene.threads.is_holding = True
    scene.step()
    assert not is_at_rest(scene), "its commit is in flight"
    scene.threads.go_on()
    assert not is_at_rest(scene), "nobody has taken the commit's outcome in"
    scene.step()
    assert is_at_rest(scene)
    assert len(scene.broker.committed) == 1


def test_a_partition_that_had_no_time_to_fold_does_not_rest(scene: Scene) -> None:
    scene.accept(record(0))
    scene.step(until=0.0)
    assert not is_at_rest(scene)


def test_a_partition_does_not_rest_while_its_store_is_written(scene: Scene) -> None:
    scene.partition.limit(Limits(1_000, 1_000, waiting_bytes_max=1_000, dirty_bytes_max=1_000, unflushed_bytes_max=1))
    scene.accept(record(0))
    scene.step()
    scene.threads.is_holding = True
    scene.step()
    assert not is_at_rest(scene)
    scene.threads.go_on()
    assert not is_at_rest(scene), "nobody has taken it in"
    scene.step()
    assert is_at_rest(scene)


def test_a_partition_that_rejects_what_it_failed_on_does_not_rest(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1, b"poison"))
    scene.step()
    scene.threads.go_on()
    assert not is_at_rest(scene)


def test_a_partition_whose_commit_was_aborted_rests_until_its_records_come_again(scene: Scene) -> None:
    scene.broker.answers = [Aborted("ILLEGAL_GENERATION: by the test", "ILLEGAL_GENERATION")]
    scene.accept(record(0))
    scene.step()
    assert not is_at_rest(scene)
    scene.step()
    assert is_at_rest(scene)
    scene.accept(record(0))
    assert not is_at_rest(scene)


def test_a_deadline_that_confirmed_ends_bring_ends_the_rest(scene: Scene) -> None:
    scene.accept(record(0))
    scene.step()
    scene.step()
    assert is_at_rest(scene)
    scene.threads.is_holding = True
    # The row's deadline is over: its output is to be committed.
    scene.step(End(offset=1, asked_at=time.monotonic() + 10))
    assert not is_at_rest(scene)
    scene.threads.go_on()
    scene.step()
    assert is_at_rest(scene)
    assert len(scene.broker.committed) == 2


def test_a_partition_that_is_taken_over_does_not_rest(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.partition._state = scene.partition._restoring()
    assert not is_at_rest(scene)
    scene.threads.go_on()
    assert not is_at_rest(scene), "nobody has taken it over yet"
    scene.step()
    assert is_at_rest(scene)
