"""The applications that CONTRIBUTING.md shows how to write work as they stand there."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from deploy.demo.applications.part import Part, Running, line
from deploy.demo.comparing.compare import Line
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import codec
from shared.schemas.user import User
from shared.topics import BEACONS, REJECTED, USERS
from tests import guide


@pytest.fixture(scope="module")
def counts() -> Application:
    """The guide's first application."""
    return guide.application("counts")


@pytest.fixture(scope="module")
def reports() -> Application:
    """The guide's application with one of each."""
    return guide.application("reports")


def test_the_guides_application_counts_a_key_until_it_is_silent(
    counts: Application, drive: Callable[[Application], Driver]
) -> None:
    driver = drive(counts)
    for at_ms in (1_000, 50_000, 109_999):
        driver.pipe(BEACONS, b"a", b"", at_ms=at_ms)
    driver.advance_to(169_998)
    assert driver.outputs(counts.outputs[0]) == []
    driver.advance_to(169_999)
    assert [(output.key, output.value) for output in driver.outputs(counts.outputs[0])] == [(b"a", b"3")]


def test_it_sets_a_record_without_a_key_aside(counts: Application, drive: Callable[[Application], Driver]) -> None:
    driver = drive(counts)
    driver.pipe(BEACONS, None, b"x", at_ms=1_000)
    assert [output.value for output in driver.outputs(REJECTED)] == [b"x"]


def test_the_guides_reports_are_joined_with_what_players_sent_in_the_minute_before(
    reports: Application, drive: Callable[[Application], Driver]
) -> None:
    driver = drive(reports)
    _, told = reports.inputs
    for at_ms, value in ((1_000, b"old"), (70_000, b"stalled"), (80_000, b"error")):
        driver.pipe(BEACONS, b"a", value, at_ms=at_ms)
    driver.pipe(BEACONS, b"b", b"another", at_ms=85_000)
    driver.pipe(told, b"a", b"u1 it froze:", at_ms=90_000)
    ada = User(id="u1", email="ada@example.com", name="Ada", attributes={}, version=1, created_ms=1, updated_ms=1)
    driver.pipe(USERS, b"u1", codec.USER.encode(ada), at_ms=1)
    driver.pipe(USERS, b"u2", b"no user", at_ms=1)
    for user_id in (b"u1", b"u2"):
        driver.pipe(told, b"b", user_id + b" too", at_ms=90_000)
    assert [(one.key, one.value) for one in driver.outputs(reports.outputs[0])] == [
        (b"a", b"somebody: it froze: stalled error"),
        (b"b", b"Ada: too another"),
        (b"b", b"somebody: too another"),
    ]
    assert [(one.key, one.value) for one in driver.outputs(REJECTED)] == [(b"u2", b"no user")]
    assert driver.rows == {"viewers": 2, "recent": 4, "viewer_timers": 4}
    driver.advance_to(130_000)
    assert driver.rows["recent"] == 3, "the timer `trim` has deleted what is old"
    driver.advance_to(85_000 + 600_000)
    assert driver.rows == {"viewers": 0, "recent": 0, "viewer_timers": 0}


class Counting:
    """A running demo whose only application counts what is posted."""

    def __init__(self) -> None:
        self.posts = 0

    def post(self, path: str, body: bytes) -> None:
        self.posts += 1

    def rows(self, table: str) -> list[dict[str, int]]:
        return [{"count": self.posts}] if self.posts else []

    def until(self, condition: Callable[[], bool]) -> bool:
        return condition()


def test_the_guides_part_of_the_demo_compares_what_it_sends() -> None:
    (code,) = re.findall(r"```python\n(def play.*?)```", guide.GUIDE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"Running": Running, "Sequence": Sequence, "Line": Line, "line": line, "Part": Part}
    names["BEACON"] = b"{}"
    exec(compile(code, str(guide.GUIDE), "exec"), names)
    assert [each.ok for each in names["PART"].play(Counting())] == [True]
