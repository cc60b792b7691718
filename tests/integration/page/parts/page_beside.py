"""What the pages beside the screens show where no processor runs: answers for partitions, one customer's limits and a recording."""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from playwright.sync_api import Page, Route

from services.dashboard.limits.queries import CustomerLimits, Limit
from shared.schemas.recording import RecordingIndex, StoredPayload
from shared.schemas.slots import PartitionStatus, SlotsOverview, SlotStatus

PATHS: Final = ("limits?customer=acme", "partitions", "replay?customer=acme&session=of-x")
_PARTITIONS: Final = 12
_SLOTS: Final = ("processor-video-views-0", "processor-video-views-1")


def answered(page: Page) -> None:
    """Has the page's questions answered from now on."""
    for path, answer in (
        ("v1/partitions", _overview),
        ("v1/limits?*", _limits),
        (
            "v1/recordings?*",
            lambda: RecordingIndex("acme", "of-x", [StoredPayload(0, 900, "", "", "", "")], [], 0, None, None),
        ),
        ("v1/recordings/payload?*", _recorded),
    ):
        page.route(f"**/{path}", _with(answer))


def _with(answer: Callable[[], Any]) -> Callable[[Route], None]:
    return lambda route: route.fulfill(body=msgspec.json.encode(answer()), content_type="application/json")


def _overview() -> SlotsOverview:
    """Of two slots: as many digits as a large installation has, every column filled somewhere."""
    now_ms = int(time.time() * 1_000)
    partitions = [
        PartitionStatus(
            number, owner=_SLOTS[number % 2], state="working", lag_records=1_234 * number, clock_ms=now_ms - 900,
            commit_ms=21, age_ms=140, rows={"views": 812_345, "sessions": 91_234}, tallies={"open_views": 798_123},
            timers_due=3, quarantined_keys=0, late=12_345, restored_rows=1_812_345, restored_rows_per_second=412_345,
            restore_left_records=0, standby_lag_records=512,
            rejected={"unreadable": 12, "application_failed": 3, "row_failed": 1} if number == 3 else {},
            dropped_commits={"INVALID_PRODUCER_EPOCH": 1, "unknown": 2} if number == 4 else {},
        )
        for number in range(_PARTITIONS - 2)
    ]  # fmt: skip
    partitions += [
        PartitionStatus(
            _PARTITIONS - 2, owner=_SLOTS[0], state="taking", restored_rows=412_345, restore_left_records=1
        ),
        PartitionStatus(_PARTITIONS - 1),
    ]
    slots = [
        SlotStatus(_SLOTS[0], rss_bytes=512 << 20, cpu_us_per_record=34.2),
        SlotStatus(_SLOTS[1], problem="its lookups do not answer"),
    ]
    return SlotsOverview("video_views", _SLOTS[0], slots, partitions)


def _limits() -> CustomerLimits:
    now_ms = int(time.time() * 1_000)
    limits = [
        Limit("beacons_per_second", 2.0, True, 3, 90.0, now_ms - 40_000),
        Limit("new_views_per_second", 1_000.0, False),
        Limit("bytes_per_second", 5e6, False, 1, 2e6, now_ms - 7_000_000),
        Limit("bytes_per_day", 2e9, True),
        Limit("cpu_ms_per_second", 200.0, False),
        Limit("members_max", 1_000.0, False),
        Limit("spans_per_second", None, False),
    ]
    return CustomerLimits(now_ms, "acme", limits, 1.2e9, 1, {"cdn": 1_234, "country+video_title": 71})


def _recorded() -> list[dict[str, Any]]:
    """A page of one line, for nine seconds, as rrweb records it."""
    text = {"type": 3, "textContent": "The page that was recorded", "id": 6}
    head = {"type": 2, "tagName": "head", "attributes": {}, "childNodes": [], "id": 3}
    line = {"type": 2, "tagName": "h1", "attributes": {}, "childNodes": [text], "id": 5}
    body = {"type": 2, "tagName": "body", "attributes": {}, "childNodes": [line], "id": 4}
    root = {"type": 2, "tagName": "html", "attributes": {}, "childNodes": [head, body], "id": 2}
    whole = {"node": {"type": 0, "childNodes": [root], "id": 1}, "initialOffset": {"left": 0, "top": 0}}
    move = {"source": 1, "positions": [{"x": 90, "y": 90, "id": 4, "timeOffset": 0}]}
    at_ms = 1_795_000_000_000
    return [
        {"type": 4, "data": {"href": "https://www.example.com", "width": 1_024, "height": 576}, "timestamp": at_ms},
        {"type": 2, "data": whole, "timestamp": at_ms + 20},
        {"type": 3, "data": move, "timestamp": at_ms + 9_000},
    ]
