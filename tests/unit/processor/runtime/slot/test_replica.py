"""A replica that hands its slot over: in which order it tells whom."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from services.processor.runtime.plan import Plan
from services.processor.runtime.slot import replica as replica_module
from services.processor.runtime.slot.replica import Replica
from services.processor.runtime.standby.roles import Heard, Patience
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
    replica = Replica(Plan(settings, APPLICATION), Patience(), lambda: None)
    replica._work(stop, {}, Heartbeats(done))  # type: ignore[arg-type]
    assert done == steps
