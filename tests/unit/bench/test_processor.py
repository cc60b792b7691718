"""The processor's benchmark: its input fixes what every view must become, and each wrong row is found."""

import json
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest

from bench.processor import reduced, slot
from bench.processor.beacons import BEACONS_A_VIEW, Truth, View, make_views, turns
from bench.processor.check import Checked, compare
from bench.report.chart import Bar, bars
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver, Weather
from shared.topics import BEACONS

VIEWS = 150
IN_FLIGHT = 40
AT_MS = 1_795_000_000_000


def run_in_memory(
    application: Application, rows: str, weather: Weather = "calm"
) -> tuple[list[tuple[bytes, bytes]], list[View]]:
    """The rows that the application makes of some views, and the views."""
    views = make_views(VIEWS, 1)
    driver = Driver(application, weather)
    records = [(BEACONS, view.key, value, AT_MS) for view, value in turns(views, IN_FLIGHT)]
    driver.pipe_all(records, commit_every=IN_FLIGHT // 2)
    driver.advance_to(AT_MS + 2 * slot.FINISH_CLEAN_MS)
    (topic,) = (topic for topic in application.outputs if topic.name == rows)
    return [(output.key, output.value) for output in driver.outputs(topic)], views


def truth_of(views: list[View]) -> dict[bytes, Truth]:
    return {view.key: view.truth for view in views if view.ends}


@pytest.mark.parametrize("weather", ["calm", "crash after commit", "crash before commit"])
def test_the_reduced_fold_makes_of_every_view_what_it_must_become(weather: Weather) -> None:
    rows, views = run_in_memory(reduced.application("bench"), "bench.rows", weather)
    truth = truth_of(views)
    assert 0 < len(truth) < VIEWS
    assert compare(rows, truth, fold="reduced") == Checked(right=len(truth), missing=0, doubled=0, wrong=0)


def test_the_full_fold_makes_of_every_view_what_it_must_become() -> None:
    rows, views = run_in_memory(slot.application("full", ""), "views")
    truth = truth_of(views)
    assert compare(rows, truth, fold="full") == Checked(right=len(truth), missing=0, doubled=0, wrong=0)


def test_two_beacons_of_a_view_lie_as_far_apart_as_there_are_views_in_flight() -> None:
    views = make_views(5 * IN_FLIGHT, 1)
    keys = [view.key for view, _ in turns(views, IN_FLIGHT)]
    steady = keys[5 * IN_FLIGHT : -BEACONS_A_VIEW * IN_FLIGHT]
    last: dict[bytes, int] = {}
    gaps = []
    for at, key in enumerate(steady):
        gaps.append(at - last.get(key, -IN_FLIGHT))
        last[key] = at
    assert min(gaps) >= IN_FLIGHT // 2
    assert sum(gaps) / len(gaps) >= 0.95 * IN_FLIGHT
    assert len(keys) > BEACONS_A_VIEW * len(views), "some beacons come twice"


def _less(rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return rows[1:]


def _more(rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [*rows, rows[0]]


def _other(rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    key, value = rows[0]
    return [(key, json.dumps(json.loads(value) | {"playing_ms": 1}).encode()), *rows[1:]]


def _unknown(rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [*rows, (b"acme:never ended", rows[0][1])]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (_less, {"missing": 1, "right": -1}),
        (_more, {"doubled": 1}),
        (_other, {"wrong": 1, "right": -1}),
        (_unknown, {"wrong": 1}),
    ],
)
def test_a_row_that_is_not_right_is_found(
    change: Callable[[list[tuple[bytes, bytes]]], list[tuple[bytes, bytes]]], found: dict[str, int]
) -> None:
    rows, views = run_in_memory(reduced.application("bench"), "bench.rows")
    truth = truth_of(views)
    checked = compare(change(rows), truth, fold="reduced")
    assert not checked.is_good
    assert checked == Checked(
        right=len(truth) + found.get("right", 0),
        missing=found.get("missing", 0),
        doubled=found.get("doubled", 0),
        wrong=found.get("wrong", 0),
    )


def test_a_chart_has_a_bar_for_each_row_from_zero_on() -> None:
    drawn = ET.fromstring(bars("a < b", [Bar("ours", 300.0, is_ours=True), Bar("theirs & more", 100.0, is_ours=False)]))
    widths = [float(rect.get("width", "")) for rect in drawn.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths[0] == pytest.approx(3 * widths[1], rel=0.01)
