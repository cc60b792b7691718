"""The measure of a story at any of its times: what its player has seen by then, in exact integers.

This is the truth's arithmetic. It walks moments, not beacons: nothing here knows what was sent, encoded or folded.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal

from loadtest.story import Moment, Story

State = Literal["idle", "starting", "playing", "paused", "rebuffering", "seeking", "failed", "ended"]

#: The states in which the viewer is watching or made to wait: the time that counts as watch time.
WATCHING: Final[tuple[State, ...]] = ("starting", "playing", "rebuffering", "seeking")

_STATE_AFTER: Final[dict[str, State]] = {
    "start": "starting",
    "playing": "playing",
    "pause": "paused",
    "resume": "playing",
    "rebufferstart": "rebuffering",
    "rebufferend": "playing",
    "seekstart": "seeking",
    "seekend": "playing",
    "error": "failed",
    "ended": "ended",
}


@dataclass(slots=True)
class Tally:
    """What has happened by one time of a story. Times in ms, bitrates in bps, the integral in bps x ms."""

    playhead_ms: int
    bitrate_bps: int
    max_playhead_ms: int = 0
    state: State = "idle"
    startup_ms: int | None = None
    in_state_ms: Counter[State] = field(default_factory=Counter)
    rebuffer_count: int = 0
    seek_count: int = 0
    #: Time in seeks that are over; `in_state_ms["seeking"]` holds the one under way too.
    seek_done_ms: int = 0
    max_seek_ms: int = 0
    bitrate_integral: int = 0
    rendition_up: int = 0
    rendition_down: int = 0
    #: The last thing reported, warning or error, and the last fatal error.
    reported: Moment | None = None
    fatal: Moment | None = None
    #: From where to where it has played, in order; a seek begins another one.
    played_ms: list[list[int]] = field(default_factory=list)
    _plays_on: bool = False
    _started_ms: int = 0
    _seeking_since_ms: int = 0

    @property
    def watch_ms(self) -> int:
        """Time from start to end, but for pauses."""
        return sum(self.in_state_ms[state] for state in WATCHING)

    def _pass(self, ms: int) -> None:
        self.in_state_ms[self.state] += ms
        if self.state == "playing" and ms:
            if not self._plays_on:
                self.played_ms.append([self.playhead_ms, self.playhead_ms])
            self._plays_on = True
            self.playhead_ms += ms
            self.played_ms[-1][1] = self.playhead_ms
            self.max_playhead_ms = max(self.max_playhead_ms, self.playhead_ms)
            self.bitrate_integral += self.bitrate_bps * ms

    def _happen(self, moment: Moment) -> None:
        match moment.kind:
            case "start":
                self._started_ms = moment.at_ms
                self.max_playhead_ms = self.playhead_ms
            case "playing":
                self.startup_ms = moment.at_ms - self._started_ms
            case "rebufferstart":
                self.rebuffer_count += 1
            case "seekstart":
                self.seek_count += 1
                self._seeking_since_ms = moment.at_ms
            case "seekend":
                took_ms = moment.at_ms - self._seeking_since_ms
                self.seek_done_ms += took_ms
                self.max_seek_ms = max(self.max_seek_ms, took_ms)
                self.playhead_ms = moment.playhead_ms
                self._plays_on = False
                self.max_playhead_ms = max(self.max_playhead_ms, moment.playhead_ms)
            case "rendition":
                self.rendition_up += moment.bitrate_bps > self.bitrate_bps
                self.rendition_down += moment.bitrate_bps < self.bitrate_bps
                self.bitrate_bps = moment.bitrate_bps
            case "warning":
                self.reported = moment
            case "error":
                self.reported = self.fatal = moment
            case _:
                pass
        self.state = _STATE_AFTER.get(moment.kind, self.state)


def tally(story: Story, until_ms: int) -> Tally:
    """The story's measure once every moment up to and at `until_ms` (ms since page load) has happened."""
    player = story.player
    result = Tally(playhead_ms=player.playhead_start_ms, bitrate_bps=player.bitrate_start_bps)
    at_ms = 0
    for moment in story.moments:
        if moment.at_ms > until_ms:
            break
        result._pass(moment.at_ms - at_ms)
        result._happen(moment)
        at_ms = moment.at_ms
    result._pass(until_ms - at_ms)
    return result
