"""Quarantined keys that are released: none holds up another, and none is said to be released before its commit."""

import time
from collections.abc import Iterable
from concurrent.futures import Future

import pytest

from services.processor.engine.core.core import Core
from services.processor.engine.record import Record
from services.processor.engine.state.failures import ApplicationFailed
from services.processor.runtime.partition.transaction import Aborted, Unclear
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.releases import KEYS_PER_TURN_MAX, RELEASES_MAX, Released, Releases
from shared.topics import BEACONS
from tests.unit.processor.engine.counting import APPLICATION
from tests.unit.processor.runtime.partition.scene import SOON, Scene

KEYS = (b"a", b"b", b"c")


class Quarantining:
    """A partition with quarantined keys, each with a row of its own, and the releases of its slot."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, keys: Iterable[bytes] = KEYS) -> None:
        self.scene = Scene(monkeypatch)
        self.releases = Releases()
        values = [b"", *[b"poison"] * APPLICATION.failure_rules.quarantine_failures]
        pairs = [(key, value) for key in keys for value in values]
        records = [Record(BEACONS.name, 0, at, 1_000, key, value) for at, (key, value) in enumerate(pairs)]
        # The first failure has them read again.
        for _ in range(2):
            self.scene.accept(*records)
            self.scene.step()
        self.scene.step()
        assert self.held == sorted(keys)

    @property
    def held(self) -> list[bytes]:
        return sorted(self.scene.working.answers.quarantined_keys)

    def release(self, key: bytes = b"", until: float = SOON) -> Future[Released]:
        return self.releases.add(key, [0], until)

    def turn(self) -> None:
        """As the slot's loop: the partition, then what others ask."""
        self.scene.step()
        self.releases.turn({} if self.scene.partition.working is None else {0: self.scene.working})


def names(answer: Future[Released]) -> list[str]:
    return sorted(one.key for one in answer.result(0).keys)


@pytest.fixture
def slot(monkeypatch: pytest.MonkeyPatch) -> Quarantining:
    return Quarantining(monkeypatch)


def refuse(monkeypatch: pytest.MonkeyPatch, *keys: bytes) -> None:
    """The rows of these keys cannot be put back."""
    release = Core.release

    def refusing(core: Core, key: bytes) -> None:
        if key in keys:
            raise ApplicationFailed(f"key {key!r} stays quarantined: DecodeError")
        release(core, key)

    monkeypatch.setattr(Core, "release", refusing)


def test_a_key_that_cannot_be_put_back_keeps_no_other(slot: Quarantining, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, b"a")
    answer = slot.release()
    for _ in range(4):
        slot.turn()
    assert names(answer) == ["b", "c"]
    assert answer.result(0).kept == {"a": "key b'a' stays quarantined: DecodeError"}
    assert (answer.result(0).left, slot.held) == (0, [b"a"])


def test_one_key_is_released_alone_and_one_that_is_not_held_is_nothing(slot: Quarantining) -> None:
    one, none = slot.release(b"b"), slot.release(b"nobody")
    for _ in range(3):
        slot.turn()
    assert names(one) == ["b"]
    assert none.result(0) == Released()
    assert slot.held == [b"a", b"c"]


@pytest.mark.parametrize("is_in_flight", [False, True], ids=["nothing in flight", "a commit in flight"])
def test_a_release_is_answered_after_the_commit_that_has_it(slot: Quarantining, is_in_flight: bool) -> None:
    threads = slot.scene.threads
    threads.is_holding = True
    if is_in_flight:
        slot.scene.accept(Record(BEACONS.name, 0, 1_000, 1_000, b"d", b""))
        slot.turn()
    answer = slot.release()
    for _ in range(3):
        slot.turn()
    assert slot.held == []
    assert not answer.done(), "it is in flight, or waits for what is"
    if is_in_flight:
        threads.go_on()
        slot.turn()
        slot.turn()
        assert not answer.done(), "that commit was cut before"
    threads.go_on()
    slot.turn()
    assert names(answer) == ["a", "b", "c"]


def test_a_release_that_was_dropped_with_its_commit_is_made_again(slot: Quarantining) -> None:
    slot.scene.broker.answers = [Aborted("the group has changed")]
    answer = slot.release()
    slot.turn()
    slot.turn()
    assert slot.held == []
    slot.turn()
    slot.turn()
    assert slot.held == list(KEYS), "the abort quarantines them again"
    assert not answer.done()
    for _ in range(3):
        slot.turn()
    assert names(answer) == ["a", "b", "c"]
    assert slot.held == []


def test_a_partition_that_is_taken_over_meanwhile_says_so_of_its_keys(slot: Quarantining) -> None:
    slot.scene.broker.answers = [Unclear("nobody knows")]
    answer = slot.release(b"a")
    slot.turn()
    slot.turn()
    slot.scene.threads.is_holding = True
    slot.turn()
    assert slot.scene.partition.working is None
    assert answer.result(0).keys == []
    assert list(answer.result(0).kept) == ["a"]


def test_many_keys_are_released_in_several_turns_also_when_nobody_waits_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = [b"key-%03d" % number for number in range(3 * KEYS_PER_TURN_MAX)]
    slot = Quarantining(monkeypatch, keys)
    refuse(monkeypatch, *keys[: 2 * KEYS_PER_TURN_MAX])
    answer = slot.release(until=time.monotonic() - 1)
    slot.turn()
    assert (answer.result(0).keys, answer.result(0).left) == ([], len(keys))
    slot.turn()
    slot.turn()
    assert slot.held == keys, "those that come first cannot be released"
    slot.turn()
    assert slot.held == keys[: 2 * KEYS_PER_TURN_MAX]
    assert slot.releases._releases != []
    slot.turn()
    slot.turn()
    assert slot.releases._releases == []
    assert answer.result(0) == Released(left=len(keys)), "what was answered is another thread's"


def test_no_more_releases_than_the_limit_are_under_way(slot: Quarantining) -> None:
    for _ in range(RELEASES_MAX):
        slot.release()
    with pytest.raises(Unanswered, match="too many"):
        slot.release()
    for _ in range(4):
        slot.turn()
    slot.release()
