"""A partition under every outcome of a commit: what is kept, what is dropped, where reading goes on."""

import time
from concurrent.futures import Future
from typing import Any

import pytest

from services.processor.runtime.kafka.refusals import KafkaRefused, WorkerFailed
from services.processor.runtime.partition import commits as commits_module
from services.processor.runtime.partition.takeover import TakenPartition
from services.processor.runtime.partition.transaction import Aborted, Fenced, GroupChanged, Unclear
from shared.topics import BEACONS
from tests.unit.processor.runtime.partition.scene import Scene, Threads, record


def test_it_folds_on_while_a_commit_is_in_flight(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1))
    scene.step()
    scene.threads.go_on()
    scene.threads.is_holding = False
    scene.step()
    scene.step()
    assert [checkpoint.records for checkpoint in scene.broker.committed] == [1, 1]


def test_an_aborted_commit_rewinds_to_what_is_committed_and_keeps_the_producer(scene: Scene) -> None:
    scene.accept(record(0))
    scene.step()
    scene.step()
    scene.broker.answers = [Aborted("ILLEGAL_GENERATION: by the test", "ILLEGAL_GENERATION")]
    scene.accept(record(1))
    scene.step()
    scene.step()
    assert scene.partition.status({}).dropped_commits == {"ILLEGAL_GENERATION": 1}
    assert scene.rewinds == [None, 1]
    assert scene.broker.takeovers == 1
    scene.accept(record(1), record(2))
    scene.step()
    scene.step()
    assert scene.broker.committed[-1].meta.next_offsets == {BEACONS.name: 3}


@pytest.mark.parametrize("outcome", [Unclear("timed out"), Fenced("epoch")])
def test_any_other_failure_takes_the_partition_over_again(scene: Scene, outcome: Exception) -> None:
    scene.broker.answers = [outcome]
    scene.accept(record(0))
    scene.step()
    scene.step()
    scene.step()
    assert scene.broker.takeovers == 2
    assert scene.partition.working is not None
    assert scene.rewinds == [None, None]
    assert scene.partition.status({}).dropped_commits == {"unclear" if type(outcome) is Unclear else "fenced": 1}


class Hanging(Threads):
    """Begins what it is given, and never comes back from it."""

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # type: ignore[override]
        future = super().submit(work, *args, **kwargs)
        return future if isinstance(future.result(), TakenPartition) else Future()


def test_a_commit_that_the_client_never_ends_is_given_up_and_the_partition_taken_over_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits_module, "OVERDUE_SECONDS", 0.0)
    scene = Scene(monkeypatch, Hanging())
    scene.accept(record(0))
    scene.step()
    scene.step()
    scene.step()
    assert scene.broker.takeovers == 2
    assert scene.rewinds == [None, None]


def test_a_commit_that_waits_for_a_thread_is_not_overdue_until_it_will_never_get_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits_module, "OVERDUE_SECONDS", 0.0)
    scene = Scene(monkeypatch)
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.step()
    assert scene.broker.takeovers == 1
    monkeypatch.setattr(commits_module, "STUCK_SECONDS", 0.0)
    with pytest.raises(WorkerFailed, match="hangs in all of them"):
        scene.step()


@pytest.mark.parametrize("is_closing", [False, True])
def test_a_commit_that_kafka_will_never_take_ends_the_slot_or_is_left_to_the_successor(
    scene: Scene, is_closing: bool
) -> None:
    scene.broker.answers = [KafkaRefused("the topic is not ours")]
    scene.accept(record(0))
    scene.step()
    if is_closing:
        assert not scene.close()
    else:
        with pytest.raises(WorkerFailed, match="not ours"):
            scene.step()
    assert scene.broker.committed == []


def test_closing_commits_what_is_folded(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1))
    scene.step()
    scene.threads.is_holding = False
    scene.threads.go_on()
    assert scene.close()
    assert scene.broker.committed[-1].meta.next_offsets == {BEACONS.name: 2}


@pytest.mark.parametrize("good", [0, 1])
def test_closing_commits_again_what_a_change_of_the_group_has_aborted(scene: Scene, good: int) -> None:
    """The commit in flight, or the one that closing cuts itself."""
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    scene.accept(record(1))
    scene.step()
    scene.broker.answers = [*[None] * good, GroupChanged("ILLEGAL_GENERATION", "ILLEGAL_GENERATION")]
    scene.threads.is_holding = False
    scene.threads.go_on()
    assert scene.close()
    assert scene.broker.generations == [None, "present", "present"]
    assert [one.meta.next_offsets for one in scene.broker.committed] == [{BEACONS.name: 1}, {BEACONS.name: 2}]


def test_closing_does_not_go_on_committing_while_the_group_refuses(scene: Scene) -> None:
    changed = GroupChanged("FENCED_INSTANCE_ID", "FENCED_INSTANCE_ID")
    scene.broker.answers = [changed, changed, changed, changed]
    scene.accept(record(0))
    scene.step()
    assert not scene.close()
    assert scene.broker.committed == []
    assert scene.broker.generations == [None, "present"]


@pytest.mark.parametrize("outcome", [Aborted("a full queue"), Unclear("timed out"), Fenced("epoch")])
def test_closing_says_when_the_commit_in_flight_failed(scene: Scene, outcome: Exception) -> None:
    scene.broker.answers = [outcome]
    scene.accept(record(0))
    scene.step()
    assert not scene.close()
    assert scene.broker.takeovers == 1
    assert scene.broker.committed == []


def test_a_commit_that_cannot_end_in_time_is_abandoned(scene: Scene) -> None:
    scene.threads.is_holding = True
    scene.accept(record(0))
    scene.step()
    assert not scene.close(time.monotonic())


def test_a_lost_partition_commits_nothing(scene: Scene) -> None:
    scene.accept(record(0))
    scene.threads.is_holding = True
    scene.partition.release()
    assert scene.broker.committed == []
    assert scene.partition.working is None
