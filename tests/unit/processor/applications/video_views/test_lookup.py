"""A view as it is asked for while it runs: open, finished, closed, and what is no view."""

from typing import Any

import msgspec
import pytest

from services.processor.applications.video_views.app import application
from services.processor.engine.application.application import LookupWrong
from services.processor.engine.driver import Driver
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    RULES,
    SKEW_MS,
    T0,
    Drive,
    cmcd,
    driver_of,
    mux,
    pipe,
    rows,
    watch,
)

LOOKUP = application(RULES).lookups[0]
END_MS = T0 + SKEW_MS + 13_900


def now(driver: Driver, view_id: str = "v1") -> Any:
    """The first answer of any candidate, all of them on this one partition."""
    for candidate in LOOKUP.candidates_of({"customer": "acme", "view": view_id}):
        found = driver.look(LOOKUP, candidate.subject)
        if found is not None:
            return msgspec.json.decode(found)
    return None


def test_a_view_is_answered_as_its_row_would_be_now(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch()[:5]:
        pipe(driver, beacon)
    answer = now(driver)
    assert (answer["state"], answer["revision"], answer["row"]["revision"]) == ("open", 0, 1)
    assert (answer["row"]["beacon_count"], answer["row"]["watch_ms"], answer["row"]["rebuffer_ms"]) == (5, 7_400, 2_000)
    assert (answer["row"]["video_id"], answer["row"]["customer_id"], answer["row"]["view_id"]) == ("film", "acme", "v1")
    pipe(driver, watch()[5])
    assert now(driver)["row"]["beacon_count"] == 6


def test_a_finished_view_is_its_row_until_a_beacon_reopens_it(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in watch():
        pipe(driver, beacon)
    driver.advance_to(END_MS + RULES.clean_ms)
    answer = now(driver)
    assert (answer["state"], answer["revision"]) == ("finished", 1)
    assert answer["row"] == msgspec.json.decode(msgspec.json.encode(rows(driver)[0]))
    pipe(driver, mux(11, "heartbeat", 14_000), at_ms=100_000)
    answer = now(driver)
    assert (answer["state"], answer["revision"], answer["row"]["revision"]) == ("open", 1, 2)


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
    ("customer", "view"),
    [("a:b", "v1"), ("", "v1"), ("x" * 65, "v1"), ("acme", ""), ("acme", "v" * 65), ("acme", "v\x002")],
)
def test_a_path_that_names_no_key_is_refused(customer: str, view: str) -> None:
    with pytest.raises(LookupWrong):
        LOOKUP.candidates_of({"customer": customer, "view": view})


def test_every_play_of_a_session_is_found_by_the_name_of_its_row(drive: Drive) -> None:
    driver = driver_of(drive)
    for seq, event, at_ms, content in ((0, "playing", 1_000, "a"), (1, "heartbeat", 2_000, "a")):
        pipe(driver, cmcd(seq, event, at_ms, sta="p", cid=content), 20_000)
    for seq, event, at_ms, content in ((0, "playing", 61_000, "b"), (1, "heartbeat", 63_000, "b")):
        pipe(driver, cmcd(seq, event, at_ms, sta="p", cid=content), 65_000)
    assert [now(driver, name)["row"]["video_id"] for name in ("s1", "s1.2")] == ["a", "b"]
    assert [now(driver, name)["row"]["view_id"] for name in ("s1", "s1.2")] == ["s1", "s1.2"]
    assert [now(driver, name) for name in ("s1.1", "s1.3", "s1.02", "s2.2", "s1.")] == [None] * 5
    # The very first play comes last of all: the others get other numbers, and are found under these.
    pipe(driver, cmcd(0, "playing", 0, sta="p", cid="z"), 66_000)
    names = ("s1", "s1.2", "s1.3")
    assert [now(driver, name)["row"]["video_id"] for name in names] == ["z", "a", "b"]
    assert all(now(driver, name)["state"] == "open" for name in names)
    driver.advance_to(T0 + 20 * MINUTE_MS)
    emitted = {row.view_id: msgspec.json.decode(msgspec.json.encode(row)) for row in rows(driver)}
    assert set(emitted) == set(names)
    assert {name: now(driver, name)["row"] for name in names} == emitted
    assert [now(driver, name)["state"] for name in names] == ["finished"] * 3
    assert [now(driver, name)["revision"] for name in names] == [emitted[name]["revision"] for name in names]
    driver.advance_to(T0 + 3 * HOUR_MS)
    assert [now(driver, name)["state"] for name in names] == ["closed"] * 3


def test_a_view_id_that_ends_like_a_play_is_asked_for_as_itself_first(drive: Drive) -> None:
    driver = driver_of(drive)
    pipe(driver, mux(1, "viewstart", 0, view_id="film.2", view_start=T0))
    assert now(driver, "film.2")["row"]["view_id"] == "film.2"
    subjects = [candidate.subject for candidate in LOOKUP.candidates_of({"customer": "acme", "view": "film.2"})]
    assert subjects == [b"acme:film.2", b"acme:film\x002"]
