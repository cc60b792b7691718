"""The truth of a view: what its row must hold, given its story and its answered beacons.

The definitions are those of `docs/view.md`. If a row copies the client's own counters (mux), the truth is what the player
had counted at its last delivered beacon. If it is integrated from states (CMCD), the truth is the story up to that beacon.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loadtest.expected.score import scores
from loadtest.expected.tally import Tally, tally
from loadtest.story import Moment, Player, Story

#: In a row of the truth beside fields of a view: when it started, when its player left, and when its last delivered beacon was
#: emitted. ms since page load; in the truth file ms since 1970 by the right clock.
TIMES: Final = ("started_ms", "left_ms", "acked_until_ms")


@dataclass(frozen=True, slots=True)
class SimulatedBeacon:
    """One beacon as a client emits it: when (ms since page load), and what to put on the wire."""

    seq: int
    at_ms: int
    #: The client's name of the event.
    event: str
    #: mux: the event's object with short keys. CMCD: empty.
    fields: dict[str, Any] = field(default_factory=dict)
    #: CMCD: the record's line. mux: empty.
    line: str = ""
    #: Whether the client sends at once, without waiting for its batch timer.
    is_urgent: bool = False

    @property
    def measures(self) -> bool:
        """Whether the beacon's time takes part in measuring; a CMCD request record has the time of the request's start."""
        return self.event != "rr"


def row(story: Story, delivered: Sequence[SimulatedBeacon]) -> dict[str, Any] | None:
    """The row of this view when exactly these beacons were delivered; None when they make no view."""
    start = story.first("start")
    until_ms = max((beacon.at_ms for beacon in delivered if beacon.measures), default=-1)
    if start is None or until_ms < start.at_ms:
        return None
    player, seen = story.player, tally(story, until_ms)
    error = seen.fatal
    if error is None and player.source == "cmcd" and _ends_in_error(delivered):
        error = seen.reported
    failed = error is not None and not error.business_exception
    end_reason = _end_reason(story, seen, error, delivered)
    names_all = player.client in ("mux-embed", "cmcd-reporter")
    found = {
        "customer_id": player.customer_id,
        "view_id": player.view_id,
        "source": player.source,
        "end_reason": end_reason,
        "view_dropped": end_reason == "timeout",
        "startup_ms": seen.startup_ms,
        # Clients send in order and lose only an end: never the first frame alone.
        "startup_unknown": "not_started" if seen.startup_ms is None else None,
        "watch_ms": seen.watch_ms,
        "playing_ms": seen.in_state_ms["playing"],
        "rebuffer_count": seen.rebuffer_count,
        "rebuffer_ms": seen.in_state_ms["rebuffering"],
        "seek_count": seen.seek_count,
        # mux adds a seek to its counter at its end; in CMCD the time in state k counts while it passes.
        "seek_ms": seen.seek_done_ms if player.source == "mux" else seen.in_state_ms["seeking"],
        # hls.js and dash.js do not report the playhead.
        "max_playhead_ms": tally(story, max(b.at_ms for b in delivered)).max_playhead_ms if names_all else 0,
        "playback_ranges": seen.played_ms if player.source == "mux" else [],
        "bitrate_integral": seen.bitrate_integral,
        "bitrate_time_ms": seen.in_state_ms["playing"],
        "rendition_up": seen.rendition_up,
        "rendition_down": seen.rendition_down,
        "playback_failed": failed,
        "startup_failed": failed and seen.startup_ms is None,
        "ebvs": error is None and seen.startup_ms is None,
        "stream_type": "live" if player.live else "vod",
        "video_id": player.video_id,
        "video_title": player.title if player.source == "mux" else None,
        # A CMCD client does not say who watches.
        "viewer_id": player.viewer_id if player.source == "mux" else None,
        "cdn": player.cdn if names_all else None,
        "player_name": player.name if player.source == "mux" else None,
        **_placed(player),
        "error_code": error.code if error else None,
        "beacon_count": len(delivered),
        # Clients send in order and lose only an end, so a view with both ends is complete.
        "complete": end_reason == "clean",
        # The simulated devices do not sleep, and nobody sets their clocks.
        "gap_ms": 0,
        "gap_count": 0,
        "clock_step_count": 0,
        "started_ms": start.at_ms,
        "left_ms": story.moments[-1].at_ms,
        "acked_until_ms": max(beacon.at_ms for beacon in delivered),
    }
    return found | scores(found)


def _placed(player: Player) -> dict[str, Any]:
    """What is known of players who have a network, and of their devices."""
    if player.network is None:
        return {}
    placed = {"asn": player.network.asn, "country": player.network.country, "player_version": player.version}
    device = player.device
    return placed | ({} if device is None else {"device": device.name, "os": device.os, "browser": device.browser})


def _ends_in_error(delivered: Sequence[SimulatedBeacon]) -> bool:
    """Whether an `e` is left that no sign of playing follows (docs/view.md, "Failures of a CMCD play")."""
    error_ms: int | None = None
    state = ""
    for beacon in sorted(delivered, key=lambda one: one.seq):
        keys = dict(pair.split("=", 1) for pair in beacon.line.split(",") if "=" in pair)
        reported, at_ms = keys.get("sta", ""), int(keys["ts"])
        if beacon.event == "e":
            error_ms = at_ms
        elif error_ms is not None:
            plays = reported == "p" and (beacon.event != "rr" or at_ms > error_ms)
            is_left = reported in ("a", "k", "q") and state == "p" and beacon.event != "rr"
            if plays or is_left or (reported == "e" and beacon.event != "rr"):
                error_ms = None
        if beacon.event != "rr":
            state = reported or state
    return error_ms is not None


def _end_reason(story: Story, seen: Tally, error: Moment | None, delivered: Sequence[SimulatedBeacon]) -> str:
    if story.player.source == "mux":
        # The `pause` that comes with an end has the same time, and does not report the end.
        is_clean = any(beacon.event in ("ended", "viewend") for beacon in delivered)
    else:
        close = story.first("close")
        closing_reported = close is not None and any(beacon.at_ms >= close.at_ms for beacon in delivered)
        is_clean = closing_reported or seen.state == "ended"
    if is_clean:
        return "clean"
    return "error" if error is not None else "timeout"
