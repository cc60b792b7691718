"""Field by source: what docs/view.md says a client can report is filled from its beacons, and nothing else is."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.beacons.native_epas import NATIVE_TEXTS
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.driver import Driver
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.applications.video_views import captured
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, SKEW_MS, T0, cmcd, mux, pipe, rows
from tests.unit.processor.applications.video_views.view.order.test_by_time import timed

DOCUMENT = Path(__file__).parents[6] / "docs" / "view.md"
FIELDS = {field.name for field in msgspec.structs.fields(View)}
#: What the collector knows of any client.
STAMPS = {
    "browser": "Chrome",
    "os": "Linux",
    "device": "TV",
    "country": "DE",
    "asn": 64496,
    "is_bot": True,
    "signed": True,
}
#: What a row says where nothing is known: a number that equals it does not count as filled.
UNKNOWN: tuple[Any, ...] = (None, 0, 0.0, False, "", [], {})


def documented() -> dict[str, dict[str, str]]:
    """Source -> field -> mark, of the table in docs/view.md."""
    section = DOCUMENT.read_text().partition("## What each client can report")[2].partition("\n## ")[0]
    lines = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")]
    sources = [cell.strip().lower() for cell in lines[0][1:]]
    marks: dict[str, dict[str, str]] = {source: {} for source in sources}
    for names, *cells in lines[2:]:
        for name in re.findall(r"`(\w+)`", names):
            assert name not in marks[sources[0]], f"{name} stands twice"
            for source, cell in zip(sources, cells, strict=True):
                marks[source][name] = cell.strip()
    return marks


def play(*stories: list[Beacon]) -> list[View]:
    """The rows of stories, each reported alone, twice in parts, by clients the collector knows."""
    found = []
    for story in stories:
        driver = Driver(application(FinishRules()))
        for number, beacon in enumerate([*story, story[0]]):
            pipe(driver, msgspec.structs.replace(beacon, **STAMPS), 20_000 + number)
        driver.advance_to(T0 + 3 * HOUR_MS)
        found += rows(driver)
    return found


def large(story: list[Beacon], *names: str) -> list[Beacon]:
    """The story, and then errors with so many texts that no view can hold them."""
    last = story[-1]
    return story + [
        msgspec.structs.replace(
            last,
            seq=None if last.seq is None else last.seq + 1 + number,
            client_time_ms=last.client_time_ms + 1 + number,
            event="error",
            source_event="error",
            attrs=dict.fromkeys(names, "🂠" * 2_000),
        )
        for number in range(20)
    ]


def interrupted(start: Beacon, playing: Beacon, heartbeat: Beacon) -> list[Beacon]:
    """The device sleeps for 40 minutes; then its clock goes on by 5 hours, which the server's clock denies."""

    def beat(number: int, at_ms: int, stepped_ms: int) -> Beacon:
        return msgspec.structs.replace(
            heartbeat,
            seq=None if heartbeat.seq is None else heartbeat.seq + number,
            client_time_ms=T0 + at_ms + stepped_ms,
            recv_time_ms=T0 + at_ms + SKEW_MS,
            clock_offset_ms=SKEW_MS - stepped_ms,
        )

    return [start, playing, heartbeat, beat(1, 40 * 60_000, 0), beat(2, 40 * 60_000 + 10_000, 5 * HOUR_MS)]


def mux_stories() -> list[View]:
    ads = list(captured.mux_with_ads())
    said = {
        "session_id": "s", "mux_viewer_id": "m", "video_source_duration": 60_000,
        "player_software_name": "hls", "player_software_version": "1.7", "viewer_connection_type": "wifi",
        "view_dropped_frame_count": 3, "view_total_downscaling": 9.0, "view_max_downscale_percentage": 0.1,
    }  # fmt: skip
    ads[-1] = msgspec.structs.replace(ads[-1], attrs=ads[-1].attrs | said)
    fatal = {"player_error_code": "2", "player_error_message": "gone", "player_error_context": "x"}
    failed = [
        mux(1, "viewstart", 0),
        mux(2, "error", 900, **fatal, player_error_severity="fatal", player_error_business_exception=False),
    ]
    business = [mux(1, "viewstart", 0), mux(2, "error", 900, **fatal, player_error_business_exception=True)]
    left = [mux(1, "viewstart", 0), mux(2, "viewend", 3_000, view_watch_time=3_000)]
    good = [mux(1, "viewstart", 0), mux(2, "playing", 300, view_time_to_first_frame=300, view_watch_time=300)]
    switched = [
        mux(1, "viewstart", 0),
        *(mux(2 + n, "rendition", n, video_source_bitrate=rate) for n, rate in enumerate((3_000_000, 1_000_000))),
    ]
    lost = [mux(1, "viewstart", 0), mux(3, "rebufferend", 900)]
    late = [mux(1, "viewstart", 0), *(mux(n, "heartbeat", n) for n in range(3, 270)), mux(2, "playing", 1)]
    slept = interrupted(mux(1, "viewstart", 0), mux(2, "playing", 500), mux(3, "heartbeat", 9_000))
    return play(
        slept,
        ads,
        [*ads[:9], *ads[11:]],
        failed,
        business,
        left,
        switched,
        lost,
        late,
        large(good, "video_source_url", "page_url", *fatal, *(f"custom_{number}" for number in range(1, 21))),
        good,
    )


def cmcd_stories() -> list[View]:
    whole = [
        cmcd(0, "viewstart", 0, sta="s", cid="clip", st="ll", cdn="x", h="cdn.example.com", msd=400),
        cmcd(1, "ad", 5, sta="s"), cmcd(2, "ad", 10, sta="s"), cmcd(3, "ad", 500, sta="s"), cmcd(4, "ad", 510, sta="s"),
        cmcd(5, "playing", 700, sta="p", br=[[5_000, "v"]], ltc=3_000, dfa=2),
        cmcd(6, "request", 650, sta="p", rc=200, ttfb=40, ttlb=300), cmcd(7, "request", 750, sta="p", rc=404),
        cmcd(8, "rebufferstart", 4_700, sta="r", bsa=[[2, None]], bsda=[[1_500, None]]),
        cmcd(9, "rendition", 5_700, sta="p", br=[[2_000, "v"]]), cmcd(10, "rendition", 5_800, sta="p", br=[[3_000, "v"]]),
        cmcd(11, "seekstart", 6_000, sta="k"), cmcd(12, "playing", 6_500, sta="p"), cmcd(13, "ad", 6_600, sta="p"),
        cmcd(14, "ended", 9_000, sta="e"), cmcd(15, "ad", 9_100, sta="e"),
    ]  # fmt: skip
    names = iter(("abs", "as", "ae", "abe", "abs", "abs"))
    whole = [msgspec.structs.replace(b, source_event=next(names)) if b.event == "ad" else b for b in whole]
    whole[5] = msgspec.structs.replace(whole[5], playhead_ms=100)
    failed = [cmcd(0, "viewstart", 0, sta="s"), cmcd(1, "error", 900, sta="f", ec=27)]
    left = [cmcd(0, "viewstart", 0, sta="s"), cmcd(2, "heartbeat", 3_000, sta="s")]
    lost = [cmcd(0, "viewstart", 0, sta="s"), cmcd(2, "heartbeat", 3_000, sta="p")]
    late = [
        cmcd(0, "viewstart", 0, sta="s"), *(cmcd(n, "heartbeat", n, sta="p") for n in range(2, 261)),
        cmcd(1, "heartbeat", 1, sta="p"),
    ]  # fmt: skip
    slept = interrupted(
        cmcd(0, "viewstart", 0, sta="s"), cmcd(1, "playing", 500, sta="p"), cmcd(2, "heartbeat", 9_000, sta="p")
    )
    return play(
        slept,
        [*captured.cmcd_stalled()],
        whole,
        failed,
        left,
        lost,
        late,
        whole[:1] + whole[5:6],
    )


def by_time(source: Any, start: dict[str, Any], playing: dict[str, Any], error: dict[str, Any]) -> list[View]:
    """The same life for both sources without sequence numbers."""
    epas = ("contentId", "contentTitle", "contentUrl", "userId", "deviceId", "deviceModel")
    texts = tuple(NATIVE_TEXTS) if source == "native" else epas
    whole = [
        timed(source, "viewstart", 0, **start),
        timed(source, "playing", 700, bitrate=2_000, bitrate_bps=2_000_000, **playing),
        timed(source, "rebufferstart", 2_000), timed(source, "rebufferend", 3_000),
        timed(source, "rendition", 4_000, bitrate=3_000, bitrate_bps=3_000_000),
        timed(source, "rendition", 4_500, bitrate=1_000, bitrate_bps=1_000_000),
        timed(source, "seekstart", 5_000), timed(source, "seekend", 5_500), timed(source, "ended", 9_000),
    ]  # fmt: skip
    whole[4] = msgspec.structs.replace(whole[4], playhead_ms=3_000)
    failed = [timed(source, "viewstart", 0), timed(source, "error", 900, **error)]
    left = [timed(source, "viewstart", 0), timed(source, "heartbeat", 3_000)]
    lost = [
        msgspec.structs.replace(timed(source, "heartbeat" if at else "viewstart", at), playhead_ms=at)
        for at in (0, 900)
    ]
    late = [timed(source, "viewstart", n, n=n) for n in range(100, 170)] + [timed(source, "heartbeat", 0)]
    slept = interrupted(whole[0], whole[1], timed(source, "heartbeat", 9_000))
    return play(slept, whole, failed, left, lost, late, large(whole, *texts, *error), whole[:2])


def epas_stories() -> list[View]:
    metadata = {
        "contentId": "clip", "contentTitle": "A clip", "contentUrl": "https://x/a", "userId": "u", "deviceId": "d",
        "deviceModel": "Roku", "live": True, "duration": 60_000, "width": 640, "height": 360,
    }  # fmt: skip
    error = {"category": "NETWORK", "code": "404", "message": "gone"}
    return by_time("epas", metadata, {}, error)


def native_stories() -> list[View]:
    start: dict[str, Any] = dict.fromkeys(NATIVE_TEXTS, "x") | {
        "custom": {"plan": "gold"}, "autoplay": True, "stream_type": "live", "asn": 64496,
        "video_duration_ms": 60_000, "player_width": 1920, "player_height": 1080, "source_width": 1280,
        "source_height": 720, "startup_ms": 700, "player_startup_ms": 100, "page_load_ms": 50, "dropped_frames": 2,
    }  # fmt: skip
    error = {"error_code": "2", "error_message": "gone", "error_context": "x", "error_severity": "fatal"}
    whole = by_time("native", start, {"live_latency_ms": 2_000, "source_width": 960, "source_height": 540}, error)
    small = [
        timed("native", "viewstart", 0, **start),
        timed("native", "playing", 1, player_width=640, player_height=360),
    ]
    request = {"request_ms": 300, "request_ttfb_ms": 40, "request_bytes": 9}
    ads = [
        timed("native", "viewstart", 0),
        *(timed("native", "request", n, request_outcome=outcome, **request) for n, outcome in
          enumerate(("completed", "failed", "canceled"))),
        *(timed("native", "ad", 100 * n, ad_event=name) for n, name in
          enumerate(("adbreakstart", "adplay", "adplaying", "adended", "aderror", "adbreakend"), 1)),
        timed("native", "playing", 900), timed("native", "ad", 1_000, ad_event="adbreakstart"),
        timed("native", "ended", 2_000), timed("native", "ad", 2_100, ad_event="adbreakstart"),
    ]  # fmt: skip
    business = [timed("native", "viewstart", 0), timed("native", "error", 900, business_exception=True)]
    lossy = [msgspec.structs.replace(timed("native", "viewstart", 0), seq=3)]
    return whole + play([*small, timed("native", "ended", 3_000)], ads, business, lossy)


STORIES: dict[str, Callable[[], list[View]]] = {
    "mux": mux_stories,
    "cmcd": cmcd_stories,
    "epas": epas_stories,
    "native": native_stories,
}


@pytest.mark.parametrize("source", STORIES)
def test_the_table_names_every_field_of_the_row_once(source: str) -> None:
    marks = documented()[source]
    assert set(marks) == FIELDS
    assert set(marks.values()) <= {"✓", "c", "–"}


@pytest.mark.parametrize("source", STORIES)
def test_what_a_client_can_report_is_filled_and_nothing_else(source: str) -> None:
    marks = documented()[source]
    found = [msgspec.structs.asdict(row) for row in STORIES[source]()]
    assert {row["source"] for row in found} == {source}
    filled = {name for name in FIELDS if any(row[name] not in UNKNOWN for row in found)}
    # A difference of 0 is reported, too.
    filled |= {name for name in FIELDS if "difference" in name and any(row[name] is not None for row in found)}
    promised = {name for name, mark in marks.items() if mark != "–"}
    assert (sorted(promised - filled), sorted(filled - promised)) == ([], [])
