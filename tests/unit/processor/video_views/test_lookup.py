"""A view as it is asked for while it runs: open, finished, closed, and what is no view."""

from typing import Any

import msgspec
import pytest

from services.processor.applications.video_views.app import application
from services.processor.engine.application import LookupWrong
from services.processor.engine.driver import Driver
from tests.unit.processor.video_views.beacons import RULES, SKEW_MS, T0, Drive, driver_of, mux, pipe, rows, watch

LOOKUP = application(RULES).lookups[0]
END_MS = T0 + SKEW_MS + 13_900


def now(driver: Driver, view_id: str = "v1") -> Any:
    found = driver.look(LOOKUP, LOOKUP.key_of({"customer": "acme", "view": view_id}))
    return None if found.json is None else msgspec.json.decode(found.json)


def test_a_view_is_answered_as_its_row_would_be_now(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch()[:5]:
        pipe(driver, beacon)
    told = now(driver)
    assert (told["state"], told["revision"], told["row"]["revision"]) == ("open", 0, 1)
    assert (told["row"]["beacon_count"], told["row"]["watch_ms"], told["row"]["rebuffer_ms"]) == (5, 7_400, 2_000)
    assert (told["row"]["video_id"], told["row"]["customer_id"], told["row"]["view_id"]) == ("film", "acme", "v1")
    pipe(driver, watch()[5])
    assert now(driver)["row"]["beacon_count"] == 6


def test_a_finished_view_is_its_row_until_a_beacon_reopens_it(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
    driver.advance_to(END_MS + RULES.clean_ms)
    told = now(driver)
    assert (told["state"], told["revision"]) == ("finished", 1)
    assert told["row"] == msgspec.json.decode(msgspec.json.encode(rows(driver)[0]))
    pipe(driver, mux(11, "heartbeat", 14_000), at_ms=100_000)
    told = now(driver)
    assert (told["state"], told["revision"], told["row"]["revision"]) == ("open", 1, 2)


def test_a_closed_view_is_known_by_its_revision_and_then_forgotten(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
    driver.advance_to(END_MS + RULES.clean_ms + RULES.lateness_ms)
    assert now(driver) == {"state": "closed", "revision": 1, "row": None}
    driver.advance_to(END_MS + RULES.clean_ms + RULES.lateness_ms + RULES.closed_ms)
    assert now(driver) is None


def test_what_never_began_and_what_never_came_is_no_view(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, mux(1, "heartbeat", 0))
    assert now(driver) is None
    assert now(driver, "other") is None


@pytest.mark.parametrize(
    ("customer", "view"), [("a:b", "v1"), ("", "v1"), ("x" * 65, "v1"), ("acme", ""), ("acme", "v" * 65)]
)
def test_a_path_that_names_no_key_is_refused(customer: str, view: str) -> None:
    with pytest.raises(LookupWrong):
        LOOKUP.key_of({"customer": customer, "view": view})
