"""Buckets in which nothing is counted: each is what a process that knows nothing of the one before emits."""

import dataclasses
from typing import Any

import msgspec

from services.processor.applications.video_views.app import application
from services.processor.engine.application.application import Processor
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from shared.schemas.live import BUCKET_MS
from shared.topics import LIVE
from tests.unit.processor.applications.video_views.beacons import MINUTE_MS, RULES, T0, live, mux, pipe, watch

#: A customer's name that has what stands before the time of a bucket.
ODD = 'a"bucket_ms":7,"'
#: Of the first customer one view ends, one is paused, and one goes on after twelve minutes. The other is never heard of again.
BEACONS = (
    *watch(),
    *(mux(1, "viewstart", 20_000, view_id="v2", video_cdn="own"), mux(2, "pause", 30_000, view_id="v2")),
    *(mux(1, "viewstart", 40_000, view_id="v3"), mux(2, "playing", 41_000, view_id="v3")),
    *(msgspec.structs.replace(mux(seq, "playing", 42_000, view_id="v4"), customer_id=ODD) for seq in (1, 2)),
    mux(3, "heartbeat", 12 * MINUTE_MS, view_id="v3"),
)


def played(*, begins_anew: bool) -> Driver:
    """All buckets until a customer has been forgotten; each by a process of its own if `begins_anew`."""
    views = application(RULES, live_dimensions=("cdn", "country"))
    driver, waiting = Driver(views), list(BEACONS)
    for at_ms in range(0, 40 * MINUTE_MS, BUCKET_MS):
        while waiting and waiting[0].client_time_ms < T0 + at_ms:
            pipe(driver, waiting.pop(0), at_ms)
        driver.advance_to(T0 + at_ms)
        if begins_anew:
            driver.restart_with(views)
    return driver


def test_a_bucket_in_which_nothing_was_counted_does_not_depend_on_those_before() -> None:
    at_once, anew = played(begins_anew=False), played(begins_anew=True)

    assert [(one.key, one.value) for one in at_once.outputs(LIVE)] == [
        (one.key, one.value) for one in anew.outputs(LIVE)
    ]
    assert (at_once.rows, at_once.changelog) == (anew.rows, anew.changelog)
    # Most have nothing but gauges; all cohorts and one customer were forgotten on the way.
    buckets = [one for one in live(at_once) if one.customer_id == "acme"]
    assert sum(not one.beacons and one.open_now > 0 for one in buckets) > 400
    assert {one.beacons for one in buckets} >= {0, 1, 2}
    assert {one.customer_id for one in live(at_once)} == {"acme", ODD}
    assert (at_once.rows["live"], at_once.rows["cohorts"]) == (1, 0)


class Failing:
    """The application's fold, which raises after each record of another customer."""

    def __init__(self, folding: Processor) -> None:
        self._folding = folding

    def __getattr__(self, name: str) -> Any:
        return getattr(self._folding, name)

    def fold(self, record: Record) -> None:
        self._folding.fold(record)
        if record.key == b"other:bad":
            raise RuntimeError("a fault of the fold")


def test_a_bucket_that_was_emitted_and_undone_is_emitted_with_what_was_counted_in_it() -> None:
    views = application(RULES)
    driver = Driver(dataclasses.replace(views, start=lambda context: Failing(views.start(context))))
    pipe(driver, mux(1, "viewstart", 1_000))
    # When it comes, the bucket before it is emitted.
    pipe(driver, msgspec.structs.replace(mux(1, "viewstart", 8_000, view_id="bad"), customer_id="other"))
    driver.advance_to(T0 + MINUTE_MS)

    assert [one.beacons for one in live(driver) if one.customer_id == "acme"][:3] == [1, 0, 0]
