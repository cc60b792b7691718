"""A body that takes long leaves most of the interpreter's time to the event loop."""

import threading
import time

import msgspec
import pytest

from bench.collector import hostile
from services.collector.http.parsing import INLINE_BYTES, UNPAUSED_SECONDS, Pauses
from services.collector.intake.post import Rules
from tests.unit.collector.http.serving import Served
from tests.unit.collector.intake.bodies import cmcd_bodies, post


class Clock:
    """The CPU time of a thread, and how long it slept."""

    def __init__(self) -> None:
        self.cpu_seconds = 5.0
        self.slept: list[float] = []

    def pauses(self) -> Pauses:
        return Pauses(lambda: self.cpu_seconds, self.slept.append)


def test_a_body_that_is_done_soon_never_pauses() -> None:
    clock = Clock()
    pause = clock.pauses()
    for _ in range(19):
        clock.cpu_seconds += UNPAUSED_SECONDS / 20
        pause()
    assert clock.slept == []


def test_a_body_that_takes_long_works_a_quarter_of_the_time() -> None:
    clock = Clock()
    pause = clock.pauses()
    for _ in range(4_000):
        clock.cpu_seconds += 0.000_1
        pause()
    assert sum(clock.slept) == pytest.approx(3 * (0.4 - UNPAUSED_SECONDS), rel=0.05)
    assert max(clock.slept) < 0.004


async def test_pauses_go_by_the_clock_of_the_thread_that_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread has a CPU time of its own: by that of another one a body would never pause, or for minutes."""
    asked_by: list[int] = []

    def thread_time() -> float:
        asked_by.append(threading.get_ident())
        return time.process_time()

    monkeypatch.setattr(time, "thread_time", thread_time)
    served = Served()
    await served.start()
    body = b"\n".join(cmcd_bodies()) * 2
    assert len(body) > INLINE_BYTES["cmcd"]
    async with served.client.post("/cmcd/acme", data=body) as answer:
        assert answer.status == 204
    await served.stop()
    assert len(asked_by) > 1
    assert set(asked_by) == {asked_by[-1]} != {threading.get_ident()}


@pytest.mark.parametrize(
    ("parser", "kind"),
    [
        ("mux", "full events"),
        ("mux", "bad events"),
        ("cmcd", "lines of keys"),
        ("native", "full beacons"),
        ("native", "bad beacons"),
        ("api calls", "many calls: words"),
        ("otlp json", "spans of nothing"),
        ("otlp protobuf", "empty spans"),
    ],
)
def test_every_parser_may_pause_after_each_input(parser: str, kind: str) -> None:
    pauses: list[None] = []
    body = hostile.body(parser, kind, 12_000)
    given = post(body, key="acme", content_type=hostile.CONTENT_TYPES.get(parser, ""))
    parsed = hostile.PARSERS[parser][0](msgspec.structs.replace(given, pause=lambda: pauses.append(None)), Rules())
    assert len(pauses) >= len(parsed.accepted) + len(parsed.rejected) > 1
