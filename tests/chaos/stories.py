"""Stories: made-up views of which every beacon and the finished row are known. Pure: all chance comes from the seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from shared.schemas.beacon import SCHEMA_VERSION, Beacon

Phase = Literal["starting", "playing", "rebuffering", "seeking", "paused"]
Ending = Literal["clean", "ended", "error", "silent", "paused"]

_SOURCES: Final[tuple[Literal["mux", "cmcd"], ...]] = ("mux", "cmcd")
CUSTOMERS: Final = ("acme", "globex", "initech")
BITRATES_BPS: Final = (800_000, 2_400_000, 5_000_000)
ENDINGS: Final[tuple[Ending, ...]] = ("clean", "clean", "clean", "ended", "error", "silent", "paused")
#: Client time of the first view; it measures and never controls, so any will do.
_BEGIN_MS: Final = 1_790_000_000_000
#: How long the beacons of a stretch of playback take to be sent.
_STRETCH_SECONDS: Final = 1.3


@dataclass(frozen=True)
class Send:
    """One record to produce, `after_ms` after the one before it. `is_copy`: the beacon was sent before."""

    beacon: Beacon
    after_ms: int
    is_copy: bool = False


@dataclass(frozen=True)
class Story:
    """One view: what is sent, in this order, and the fields its newest row must have; no fields where no row may come."""

    key: tuple[str, str]
    sends: list[Send]
    row: dict[str, Any]

    @property
    def beacons(self) -> int:
        """Distinct beacons that are sent."""
        return sum(not send.is_copy for send in self.sends)


@dataclass
class _Moment:
    """A beacon to be: what the player does at `at_ms`, and what it has done until then."""

    at_ms: int
    event: str
    phase: Phase | None
    totals: dict[str, int]
    bitrate_bps: int
    #: Says nothing that a later beacon does not say again: losing it changes no field.
    is_heartbeat: bool = False


_TOTALS: Final = (
    "watch_ms",
    "playing_ms",
    "rebuffer_count",
    "rebuffer_ms",
    "seek_count",
    "seek_ms",
    "max_seek_ms",
    "startup_ms",
)


class _Play:
    """Plays a view through its phases, and counts as a player would."""

    def __init__(self, chance: random.Random, begin_ms: int) -> None:
        self._chance = chance
        self.at_ms = begin_ms
        self.bitrate_bps = 0
        self.totals = dict.fromkeys(_TOTALS, 0)
        self.integral = 0
        self.up = self.down = 0
        self.moments: list[_Moment] = []

    def report(self, event: str, phase: Phase | None, *, is_heartbeat: bool = False) -> None:
        self.moments.append(
            _Moment(self.at_ms, event, phase, dict(self.totals), self.bitrate_bps, is_heartbeat=is_heartbeat)
        )

    def spend(self, phase: Phase, elapsed_ms: int) -> None:
        self.at_ms += elapsed_ms
        if phase != "paused":
            self.totals["watch_ms"] += elapsed_ms
        if phase == "playing":
            self.totals["playing_ms"] += elapsed_ms
            self.integral += self.bitrate_bps * elapsed_ms
        elif phase == "rebuffering":
            self.totals["rebuffer_ms"] += elapsed_ms
        elif phase == "seeking":
            self.totals["seek_ms"] += elapsed_ms
            self.totals["max_seek_ms"] = max(self.totals["max_seek_ms"], elapsed_ms)

    def start(self) -> None:
        self.report("viewstart", "starting")
        self.spend("starting", self._chance.randint(100, 3_000))
        self.totals["startup_ms"] = self.totals["watch_ms"]
        self.bitrate_bps = self._chance.choice(BITRATES_BPS)
        self.report("playing", "playing")

    def watch(self) -> None:
        """A stretch of playback with a heartbeat or a change of rendition, then (mostly) an interruption."""
        self.spend("playing", self._chance.randint(1_000, 10_000))
        if self._chance.random() < 0.7:
            self.report("heartbeat", "playing", is_heartbeat=True)
        else:
            before, self.bitrate_bps = self.bitrate_bps, self._chance.choice(BITRATES_BPS)
            self.up += self.bitrate_bps > before
            self.down += self.bitrate_bps < before
            self.report("rendition", "playing")
        self.spend("playing", self._chance.randint(1, 5_000))
        interruption = self._chance.choice(("none", "rebuffering", "seeking", "paused"))
        if interruption == "rebuffering":
            self.totals["rebuffer_count"] += 1
            self.report("rebufferstart", "rebuffering")
            self.spend("rebuffering", self._chance.randint(50, 4_000))
            self.report("rebufferend", "playing")
        elif interruption == "seeking":
            self.totals["seek_count"] += 1
            self.report("seekstart", "seeking")
            self.spend("seeking", self._chance.randint(50, 2_000))
            self.report("seekend", "playing")
        elif interruption == "paused":
            self.report("pause", "paused")
            self.spend("paused", self._chance.randint(500, 60_000))
            self.report("playing", "playing")

    def end(self, ending: Ending) -> None:
        self.spend("playing", self._chance.randint(1, 5_000))
        events = {"clean": "viewend", "ended": "ended", "error": "error", "silent": "heartbeat", "paused": "pause"}
        self.report(events[ending], "playing" if ending == "silent" else None)


@dataclass(frozen=True)
class _Who:
    """Which view a beacon is of, and what all its beacons share."""

    source: Literal["mux", "cmcd"]
    customer_id: str
    view_id: str
    begin_ms: int
    ending: Ending


def stories(seed: int) -> Iterator[Story]:
    """Views without end, the same for the same seed."""
    chance = random.Random(seed)
    number = 0
    while True:
        number += 1
        yield _story(chance, f"{seed}-{number}")


def long_story(seed: int, number: int, seconds: float, pace: int = 1) -> Story:
    """A view of which beacons come for about so long, `pace` times as fast as those of others: hours of the client's time."""
    stretches = max(1, round(seconds * pace / _STRETCH_SECONDS))
    found = _story(random.Random(seed * 1_000 + number), f"{seed}-long-{number}", stretches)
    return replace(found, sends=[replace(send, after_ms=send.after_ms // pace) for send in found.sends])


def _story(chance: random.Random, view_id: str, stretches: int | None = None) -> Story:
    source = chance.choice(_SOURCES)
    play = _Play(chance, _BEGIN_MS + chance.randint(0, 10_000_000))
    who = _Who(source, chance.choice(CUSTOMERS), view_id, play.at_ms, chance.choice(ENDINGS))
    ending = who.ending
    if stretches is None and chance.random() < 0.03:
        # A page that only loads: no view, so no row.
        play.report("custom", None)
        sends = _order(chance, [_beacon(replace(who, source="mux"), 1, play.moments[0])])
        return Story((who.customer_id, view_id), sends, {})
    play.start()
    for _ in range(chance.randint(1, 5) if stretches is None else stretches):
        play.watch()
    play.end(ending)
    beacons = [_beacon(who, seq, moment) for seq, moment in enumerate(play.moments, 1 if source == "mux" else 0)]
    lost = 0
    losable = [at for at, moment in enumerate(play.moments) if moment.is_heartbeat]
    if losable and chance.random() < 0.05:
        del beacons[chance.choice(losable)]
        lost = 1
    sends = _order(chance, beacons)
    has_ended = ending in {"clean", "ended"}
    row = {
        **play.totals,
        "source": source,
        "video_id": f"video-{view_id}",
        "view_start_ms": who.begin_ms,
        "view_end_ms": play.at_ms,
        "max_playhead_ms": play.totals["playing_ms"],
        "bitrate_integral": play.integral,
        "bitrate_time_ms": play.totals["playing_ms"],
        "rendition_up": play.up,
        "rendition_down": play.down,
        "end_reason": "clean" if has_ended else "error" if ending == "error" else "timeout",
        "playback_failed": ending == "error",
        "error_code": "27" if ending == "error" else None,
        "beacon_count": len(beacons),
        "duplicate_count": sum(send.is_copy for send in sends),
        "seq_gaps": lost,
        "late_count": 0,
        "complete": has_ended and not lost,
    }
    return Story((who.customer_id, view_id), sends, row)


_CMCD_STATES: Final = {"starting": "s", "playing": "p", "rebuffering": "r", "seeking": "k", "paused": "a"}
_CMCD_ENDS: Final = {"clean": "q", "ended": "e", "error": "f", "paused": "a"}


def _beacon(who: _Who, seq: int, moment: _Moment) -> Beacon:
    return Beacon(
        schema_version=SCHEMA_VERSION,
        source=who.source,
        customer_id=who.customer_id,
        view_id=who.view_id,
        event=moment.event,
        source_event=moment.event,
        recv_time_ms=moment.at_ms,
        client_time_ms=moment.at_ms,
        sent_time_ms=moment.at_ms if who.source == "mux" else None,
        clock_offset_ms=0,
        seq=seq,
        playhead_ms=moment.totals["playing_ms"],
        attrs=_mux_attrs(who, moment) if who.source == "mux" else _cmcd_attrs(who, moment),
    )


def _mux_attrs(who: _Who, moment: _Moment) -> dict[str, Any]:
    names = {
        "view_watch_time": "watch_ms",
        "view_playing_time_ms_cumulative": "playing_ms",
        "view_max_playhead_position": "playing_ms",
        "view_rebuffer_count": "rebuffer_count",
        "view_rebuffer_duration": "rebuffer_ms",
        "view_seek_count": "seek_count",
        "view_seek_duration": "seek_ms",
        "view_max_seek_time": "max_seek_ms",
    }
    attrs: dict[str, Any] = {name: moment.totals[field] for name, field in names.items()}
    # Delta encoded: what does not change is sent once.
    if moment.event == "viewstart":
        attrs |= {"view_start": who.begin_ms, "video_id": f"video-{who.view_id}"}
    if moment.event == "playing":
        attrs["view_time_to_first_frame"] = moment.totals["startup_ms"]
    if moment.event in {"playing", "rendition"}:
        attrs["video_source_bitrate"] = moment.bitrate_bps
    if moment.event == "error":
        attrs |= {"player_error_code": 27, "player_error_severity": "fatal"}
    return attrs


def _cmcd_attrs(who: _Who, moment: _Moment) -> dict[str, Any]:
    state = _CMCD_ENDS[who.ending] if moment.phase is None else _CMCD_STATES[moment.phase]
    attrs: dict[str, Any] = {"sta": state, "cid": f"video-{who.view_id}"}
    if moment.bitrate_bps:
        attrs["br"] = [[moment.bitrate_bps // 1000, "v"]]
    if moment.event == "error":
        attrs["ec"] = 27
    return attrs


#: Longer than the finish rules of a chaos run: the view finishes and is reopened.
COMEBACK_MS: Final = 6_000


def _order(chance: random.Random, beacons: list[Beacon]) -> list[Send]:
    """The beacons as a network brings them: some swapped, some twice, some long after the rest.

    The last send is never a copy of long ago: what comes again after the finish counts in no row.
    """
    order = list(beacons)
    for at in range(len(order) - 1):
        if chance.random() < 0.1:
            order[at], order[at + 1] = order[at + 1], order[at]
    sends = [Send(beacon, chance.randint(50, 900)) for beacon in order]
    if len(sends) > 2 and chance.random() < 0.03:
        # After a long silence, or after the last beacon: a revision.
        straggler = sends.pop(chance.randrange(len(sends)))
        sends.append(Send(straggler.beacon, COMEBACK_MS))
    with_copies: list[Send] = []
    copies_to_come: list[Send] = []
    for at, send in enumerate(sends):
        with_copies.append(send)
        if chance.random() < 0.05:
            with_copies.append(Send(send.beacon, 0, is_copy=True))
        if at < len(sends) - 1:
            with_copies += copies_to_come
            copies_to_come = [Send(send.beacon, 10, is_copy=True)] if chance.random() < 0.04 else []
    return with_copies
