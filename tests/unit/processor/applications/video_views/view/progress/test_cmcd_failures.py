"""Which errors of a CMCD play are failures shows in what follows them (docs/view.md, "Failures of a CMCD play")."""

import pytest

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import MINUTE_MS, Drive, cmcd
from tests.unit.processor.applications.video_views.row.test_definitions import row_of

START = [cmcd(0, "viewstart", 0, sta="s"), cmcd(1, "playing", 500, sta="p")]


def error(seq: int, at_ms: int, sta: str = "p") -> Beacon:
    return cmcd(seq, "error", at_ms, e="e", sta=sta, ec="27")


def fatal(seq: int, at_ms: int, sta: str) -> Beacon:
    return cmcd(seq, "error", at_ms, e="ce", cen="playhead-error:27", sta=sta)


PLAYS_ON = [cmcd(3 + n, "heartbeat", (1 + n) * MINUTE_MS, sta="p") for n in range(10)]
AFTER: dict[str, tuple[list[Beacon], bool]] = {
    "nothing": ([error(2, 20_000)], True),
    "nothing, in a stall": ([error(2, 20_000, "r")], True),
    "ten minutes of playing, and a stall": (
        [error(2, 20_000, "r"), *PLAYS_ON, cmcd(13, "rebufferstart", 11 * MINUTE_MS, sta="r")],
        False,
    ),
    "ten minutes of playing, and a seek": (
        [error(2, 20_000), *PLAYS_ON, cmcd(13, "seekstart", 11 * MINUTE_MS, sta="k")],
        False,
    ),
    "a stall to the end": (
        [error(2, 20_000), cmcd(3, "rebufferstart", 25_000, sta="r"), cmcd(4, "heartbeat", 55_000, sta="r")],
        True,
    ),
    "a request made while it played": ([error(2, 20_000), cmcd(3, "request", 21_000, sta="p")], False),
    "a request made before it": ([error(2, 20_000), cmcd(3, "request", 19_000, sta="p")], True),
    "a request that failed after it": ([error(2, 20_000), cmcd(3, "request", 21_000, sta="p", rc=404)], True),
    "a request after it that repeats its code": ([error(2, 20_000), cmcd(3, "request", 21_000, sta="p", ec=27)], True),
    "its own end": ([error(2, 20_000), cmcd(3, "ended", 30_000, sta="e")], False),
    "a pause of what played": ([error(2, 20_000), cmcd(3, "pause", 30_000, sta="a")], False),
    "a seek from a stall": ([error(2, 20_000, "r"), cmcd(3, "seekstart", 30_000, sta="k")], True),
    "a viewer who leaves what plays": ([error(2, 20_000), cmcd(3, "viewend", 30_000, sta="q")], False),
    "another error": ([error(2, 20_000), PLAYS_ON[0], error(4, 90_000)], True),
    "the state failed": ([cmcd(2, "error", 20_000, sta="f")], True),
    "the state failed, and playing again": (
        [cmcd(2, "error", 20_000, sta="f"), cmcd(3, "heartbeat", 30_000, sta="p")],
        False,
    ),
    "failed twice": (
        [cmcd(2, "error", 20_000, sta="f"), cmcd(3, "request", 30_000, sta="p"), cmcd(4, "heartbeat", 60_000, sta="f")],
        True,
    ),
    "our fatal event in a stall, and playing again": (
        [fatal(2, 20_000, "r"), cmcd(3, "heartbeat", 30_000, sta="p")],
        False,
    ),
    "our fatal event while what is loaded plays on": (
        [fatal(2, 20_000, "p"), cmcd(3, "heartbeat", 30_000, sta="p"), cmcd(4, "rebufferstart", 40_000, sta="r")],
        True,
    ),
    "our fatal event, and a new first frame": (
        [fatal(2, 20_000, "p"), cmcd(3, "rebufferstart", 30_000, sta="r"), cmcd(4, "playing", 40_000, sta="p")],
        False,
    ),
}


@pytest.mark.parametrize(("after", "failed"), AFTER.values(), ids=list(AFTER))
def test_an_error_is_a_failure_unless_something_plays_after_it(drive: Drive, after: list[Beacon], failed: bool) -> None:
    row = row_of(drive, [*START, *after])
    assert (row.playback_failed, row.startup_failed, row.ebvs) == (failed, False, False)
    assert (row.error_code is not None) <= failed
    assert (row.end_reason == "error") == (failed and after[-1].event != "viewend")


@pytest.mark.parametrize(("last", "failed"), [("error", True), ("heartbeat", False)])
def test_of_a_player_that_never_sends_its_state_the_last_error_is_the_failure(
    drive: Drive, last: str, failed: bool
) -> None:
    story = [
        cmcd(0, "heartbeat", 0),
        cmcd(1, "heartbeat", 900, msd=900),
        cmcd(2, "error", 5_000, e="e"),
        cmcd(3, last, 9_000),
    ]
    assert row_of(drive, story).playback_failed is failed


def test_dash_js_that_asks_once_more_for_a_segment_after_its_error(drive: Drive) -> None:
    """dash.js 5.2 in Chromium: video gives up, audio asks again and gives up, what is loaded plays on for 0.6 s."""
    story = [
        cmcd(0, "viewstart", 0, sta="s"),
        cmcd(9, "playing", 442, sta="p"),
        cmcd(17, "request", 2_547, sta="p", rc=404, ot="v", ttlb=7),
        cmcd(18, "error", 3_745, e="e", sta="p", ec=27),
        cmcd(19, "request", 2_552, sta="p", rc=404, ot="a", ttlb=7, ec=27),
        cmcd(20, "error", 3_764, e="e", sta="p", ec=27),
        cmcd(21, "request", 3_771, sta="p", rc=404, ot="a", ttlb=102, ec=27),
        cmcd(22, "rebufferstart", 4_424, sta="r", ec=27),
        cmcd(23, "request", 3_771, sta="r", rc=404, ot="a", ttlb=97, ec=27),
    ]
    row = row_of(drive, story)
    assert (row.error_code, row.end_reason, row.playback_failed) == ("27", "error", True)
    assert (row.playing_ms, row.rebuffer_count) == (3_982, 1)
