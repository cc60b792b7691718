"""What a player has counted so far: its own counters, which some clients send. It walks moments, never beacons."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.oracle.sessions.viewer import Moment, Play

WATCHED: Final = ("starting", "playing", "rebuffering", "seeking", "ad")
_AFTER: Final = {
    "start": "starting",
    "playing": "playing",
    "resume": "playing",
    "unstall": "playing",
    "pause": "paused",
    "stall": "rebuffering",
    "seek": "seeking",
    "error": "failed",
    "ended": "ended",
    "adplaying": "ad",
    "adresume": "ad",
    "adpause": "ad paused",
    "adended": "ad waiting",
    "aderror": "ad waiting",
    "adbreakend": "ad waiting",
}


@dataclass(slots=True)
class Meter:
    """The counters. Times in ms; a device that sleeps counts nothing."""

    bitrate_bps: int
    state: str = "idle"
    in_state_ms: Counter[str] = field(default_factory=Counter)
    playhead_ms: int = 0
    max_playhead_ms: int = 0
    started_ms: int = -1
    startup_ms: int | None = None
    stalls: list[int] = field(default_factory=list)
    seeks: list[int] = field(default_factory=list)
    has_played: bool = False
    error: Moment | None = None
    rate: int = 100
    asleep: bool = False
    _before_seek: str = ""
    _seek_began_ms: int = 0

    @property
    def watch_ms(self) -> int:
        """Time from the start on, but for pauses."""
        return sum(self.in_state_ms[state] for state in WATCHED)

    def wait(self, ms: int) -> None:
        """Lets time pass."""
        if self.asleep:
            return
        self.in_state_ms[self.state] += ms
        if self.state == "rebuffering" and self.stalls:
            self.stalls[-1] += ms
        if self.state == "playing":
            self.playhead_ms += ms * self.rate // 100
            self.max_playhead_ms = max(self.max_playhead_ms, self.playhead_ms)

    def happen(self, moment: Moment) -> None:
        """Counts one moment."""
        kind, at_ms = moment.kind, moment.at_ms
        before = self.state
        self.state = _AFTER.get(kind, before)
        match kind:
            case "start":
                self.started_ms = at_ms
            case "playing" | "adplaying" if self.startup_ms is None:
                self.startup_ms = at_ms - self.started_ms
            case "stall":
                self.stalls.append(0)
            case "seek":
                self._before_seek, self._seek_began_ms = before, at_ms
            case "seeked":
                self.state = "playing" if self._before_seek == "rebuffering" else self._before_seek
                self.seeks.append(at_ms - self._seek_began_ms)
                self.playhead_ms = moment.number
                self.max_playhead_ms = max(self.max_playhead_ms, self.playhead_ms)
            case "rendition":
                self.bitrate_bps = moment.number
            case "rate":
                self.rate = moment.number
            case "sleep" | "wake":
                self.asleep = kind == "sleep"
            case "error" | "warning":
                self.error = moment
            case _:
                pass
        self.has_played = self.has_played or kind == "playing"


def walk(play: Play, beat_ms: int, beats_in: tuple[str, ...]) -> Iterator[tuple[Moment, Meter]]:
    """Every moment of a play with the counters at it, and every `beat_ms` between them a moment `beat`.

    Nothing beats while the device sleeps, nor in other states than `beats_in`.
    """
    meter = Meter(play.bitrate_bps)
    now_ms = play.moments[0].at_ms
    beats_ms = now_ms + beat_ms
    for moment in play.moments:
        while beats_ms < moment.at_ms:
            meter.wait(beats_ms - now_ms)
            now_ms = beats_ms
            beats_ms += beat_ms
            if meter.state in beats_in and not meter.asleep:
                yield Moment(now_ms, "beat"), meter
        meter.wait(moment.at_ms - now_ms)
        now_ms = moment.at_ms
        meter.happen(moment)
        yield moment, meter
