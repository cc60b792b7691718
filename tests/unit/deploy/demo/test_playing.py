"""Parts of the demo play at the same time: their lines keep the parts' order, and the first error ends them all."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from deploy.demo.applications.part import Refused, Running, line
from deploy.demo.applications.playing import Ended, at_once, holds
from deploy.demo.comparing.compare import Line
from deploy.local.supervisor import Supervisor
from shared.settings import Settings

SECONDS_MAX = 60.0


def test_each_plays_beside_the_others_and_lines_keep_their_order() -> None:
    others = threading.Barrier(3)

    def plays(name: str) -> Sequence[Line]:
        # Passes only where all three play at a time.
        others.wait(SECONDS_MAX)
        return [line(f"{name}: first", 1, 1), line(f"{name}: second", 1, 1)]

    ended = threading.Event()
    lines = at_once([lambda name=name: plays(name) for name in "cab"], ended)  # type: ignore[misc]
    assert [one.name for one in lines] == [f"{name}: {which}" for name in "cab" for which in ("first", "second")]
    assert ended.is_set()


def test_the_first_error_is_raised_and_ends_what_still_waits(tmp_path: Path) -> None:
    supervisor, ended, waits = Supervisor(tmp_path), threading.Event(), threading.Event()
    ends: list[Exception] = []

    def refused() -> Sequence[Line]:
        assert waits.wait(SECONDS_MAX)
        raise Refused("POST /v1/traces: 400")

    def never() -> bool:
        waits.set()
        return False

    gone = threading.Event()

    def waiting() -> Sequence[Line]:
        try:
            holds(supervisor, ended, never)
        except Ended as end:
            ends.append(end)
        gone.set()
        return []

    with pytest.raises(Refused, match="400"):
        at_once([waiting, refused], ended)
    assert gone.wait(SECONDS_MAX)
    assert len(ends) == 1


def test_a_lookup_that_is_not_answered_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([(503, {}), (0, None), (200, {"data": [1]})])
    monkeypatch.setattr(Running, "ask", lambda *_: next(answers))
    assert a_part(until=lambda is_answered: any(is_answered() for _ in range(9))).found("/traces/1") == {"data": [1]}


@pytest.mark.parametrize(("status", "asked"), [(404, 1), (500, 1), (503, 3)])
def test_a_lookup_that_has_nothing_or_is_not_answered_in_time_has_none(
    monkeypatch: pytest.MonkeyPatch, status: int, asked: int
) -> None:
    answers = [(status, {"error": "none"})] * 3
    monkeypatch.setattr(Running, "ask", lambda *_: answers.pop())
    assert a_part(until=lambda is_answered: any(is_answered() for _ in range(3))).found("/traces/1") is None
    assert len(answers) == 3 - asked


def a_part(until: Callable[[Callable[[], bool]], bool]) -> Running:
    """A part that waits as `until` does, and sends nothing."""
    address = "http://127.0.0.1:1"
    return Running(Settings(), address, address, "", Path(), address, str, until, print)
