"""A replica that hands its slot over: in which order it tells whom. One that stands by: what it copies, whether it is ready."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from services.processor.runtime.plan import Plan
from services.processor.runtime.slot import replica as replica_module
from services.processor.runtime.slot.replica import Replica
from services.processor.runtime.standby.roles import Heard, RoleTimeouts
from services.processor.settings import ProcessorSettings
from services.rim.admin.admin import Check
from shared.schemas.presence import SCHEMA_VERSION, Presence, Role
from tests.unit.processor.engine.counting import APPLICATION

#: Replica 1 of slot test/0, with a copy of the slot's only partition.
STANDBY = Presence(
    schema_version=SCHEMA_VERSION,
    application=APPLICATION.id,
    slot="test/0",
    replica=1,
    incarnation="another",
    role="standby",
    partitions=[0],
    lags={0: 0},
)


class Heartbeats:
    """Hears the standby until the slot is handed over, and from then on that it is active."""

    def __init__(self, done: list[str]) -> None:
        self._done = done
        self._role: Role = "standby"

    def announce(self, role: Role, _partitions: Any, **_: Any) -> None:
        if role == "handing_over":
            self._role = "active"
        if self._done[-1:] != [role]:
            self._done.append(role)

    def others(self) -> dict[int, Heard]:
        return {1: Heard(msgspec.structs.replace(STANDBY, role=self._role), 1e12)}


@pytest.mark.parametrize(
    ("is_ready", "steps"),
    [
        (True, ["active", "committed", "handing_over", "closed", "handing_over"]),
        # Its takeover could fence the successor.
        (False, ["active", "committed", "closed", "handing_over"]),
    ],
)
def test_the_successor_is_told_before_the_clients_here_are_closed_unless_a_takeover_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_ready: bool, steps: list[str]
) -> None:
    done: list[str] = []
    stop = threading.Event()
    membership = SimpleNamespace(hand_over=lambda: done.append("committed"), is_clean=True)

    class Worker:
        partitions = frozenset({0})

        def __init__(self, *_: Any) -> None:
            self.membership = membership

        def start(self) -> None:
            """It works."""

        def turn(self) -> None:
            stop.set()

        def is_ready(self) -> Check:
            return Check(is_ready)

        def close(self) -> None:
            done.append("closed")

    monkeypatch.setattr(replica_module, "Worker", Worker)
    settings = ProcessorSettings(slot="test/0", state_dir=tmp_path)
    replica = Replica(Plan(settings, APPLICATION), RoleTimeouts(), lambda: None)
    replica._work(stop, {}, Heartbeats(done))  # type: ignore[arg-type]
    assert done == steps


@pytest.mark.parametrize("number", [0, 1])
def test_a_home_replica_that_copies_beside_an_active_standby_is_not_ready_and_a_standby_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    """The home replica's copy lacks more than can be taken over."""

    class Standby:
        partitions = frozenset({0})
        questions = SimpleNamespace(answer=lambda: None)

        def __init__(self, *_: Any) -> None:
            """It copies."""

        def follow(self, partitions: list[int]) -> None:
            assert partitions == [0]

        def copy(self) -> None:
            """A part."""

        def lags(self) -> dict[int, int]:
            return {0: RoleTimeouts.lag_records_max + 1}

        def close(self) -> None:
            """It has nothing."""

    active = Heard(msgspec.structs.replace(STANDBY, role="active", replica=1 - number), time.monotonic())
    heartbeats = SimpleNamespace(
        others=lambda: {1 - number: active}, announce=lambda *_, **__: None, listening_since=time.monotonic()
    )
    stop = threading.Event()
    said: list[bool] = []

    def look() -> None:
        said.append(replica.is_ready().ok)
        if len(said) == 3:
            stop.set()

    monkeypatch.setattr(replica_module, "Standby", Standby)
    settings = ProcessorSettings(slot="test/0", state_dir=tmp_path, replica=number)
    replica = Replica(Plan(settings, APPLICATION), RoleTimeouts(), look)
    assert replica._stand_by(stop, heartbeats) is None  # type: ignore[arg-type]
    assert said == [False, number == 1, number == 1]


def test_a_standby_follows_who_works_the_slot_now_and_not_who_is_dead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    followed: list[list[int]] = []
    stop = threading.Event()

    class Standby:
        partitions = frozenset({1, 2})

        def __init__(self, *_: Any) -> None:
            self.questions = SimpleNamespace(answer=lambda: None)

        def follow(self, partitions: list[int]) -> None:
            followed.append(partitions)

        def copy(self) -> None:
            stop.set()

        def lags(self) -> dict[int, int]:
            return {}

        def close(self) -> None:
            """Nothing is open."""

    beat = msgspec.structs.replace(STANDBY, role="active", lags={})
    now = time.monotonic()
    others = {
        0: Heard(msgspec.structs.replace(beat, replica=0, partitions=[0, 1]), now - 3_600),
        1: Heard(msgspec.structs.replace(beat, replica=1, partitions=[1, 2]), now),
    }
    heartbeats = SimpleNamespace(others=lambda: others, announce=lambda *_, **__: None, listening_since=now)
    monkeypatch.setattr(replica_module, "Standby", Standby)
    settings = ProcessorSettings(slot="test/0", state_dir=tmp_path, replica=2)
    replica = Replica(Plan(settings, APPLICATION), RoleTimeouts(), lambda: None)
    replica._stand_by(stop, heartbeats)  # type: ignore[arg-type]
    assert followed == [[1, 2]]


@pytest.mark.parametrize(("unheard_seconds", "is_ready"), [(0.1, True), (60.0, False)])
def test_a_standby_that_does_not_hear_itself_is_not_ready(
    tmp_path: Path, unheard_seconds: float, is_ready: bool
) -> None:
    settings = ProcessorSettings(slot="test/0", state_dir=tmp_path, replica=1)
    replica = Replica(Plan(settings, APPLICATION), RoleTimeouts(), lambda: None)
    assert not replica.is_ready().ok, "it starts"
    replica._standing_by = Check(ok=True, why="standing by")
    replica._heartbeats = SimpleNamespace(unheard_seconds=unheard_seconds)  # type: ignore[assignment]
    assert replica.is_ready().ok == is_ready
