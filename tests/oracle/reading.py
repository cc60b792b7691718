"""The oracle's reading of beacons: one of each, in their order, each with the state after it; plays of a CMCD session.

Written from the words of `docs/view.md` (Events, Order, Plays of a CMCD session, State). It shares no code with the fold.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

_STATES: Final = {
    "viewstart": "starting",
    "playing": "playing",
    "pause": "paused",
    "rebufferstart": "rebuffering",
    "rebufferend": "playing",
    "seekstart": "seeking",
    "ended": "ended",
    "viewend": "ended",
    "error": "failed",
}
_STA: Final = {
    "s": "starting",
    "p": "playing",
    "a": "paused",
    "r": "rebuffering",
    "w": "rebuffering",
    "k": "seeking",
    "e": "ended",
    "q": "ended",
    "f": "failed",
    "d": "none",
}
#: Canonical names of the clients' own, where they differ.
_NAMES: Final = {
    "mux": {
        "seeking": "seekstart",
        "seeked": "seekend",
        "renditionchange": "rendition",
        "requestcompleted": "request",
        "requestfailed": "request",
        "requestcanceled": "request",
    },
    "epas": {
        "loading": "viewstart",
        "paused": "pause",
        "buffering": "rebufferstart",
        "buffered": "rebufferend",
        "seeking": "seekstart",
        "seeked": "seekend",
        "bitrate_changed": "rendition",
        "stopped": "viewend",
    },
    "native": {},
}
#: An ad that begins is an attempt and an impression.
_CMCD_ADS: Final = {"abs": "adbreakstart", "abe": "adbreakend", "as": "adplaying", "ae": "adended", "sk": "adended"}
#: What happened in one millisecond, in this order; the empty name stands for all other events.
_RANKS: Final = (
    *("viewstart", "play", "rendition", "seekend", "rebufferend", "playing", ""),
    *("pause", "rebufferstart", "seekstart", "error", "ended", "viewend"),
)
_AD_RANKS: Final = ("adbreakstart", "adplay", "adplaying", "adpause", "adended")


@dataclass(slots=True)
class Step:
    """One beacon as the definitions see it."""

    beacon: dict[str, Any]
    #: The client's clock, ms since 1970; `append_ms` is the broker's.
    at_ms: int
    append_ms: int
    name: str
    own_name: str
    attrs: dict[str, Any]
    #: The state after it; empty where it says none.
    state: str = ""
    #: What to add to its times for its place in its session, after a clock that was set back.
    shift_ms: int = 0
    #: Whether it is the first frame of an ad.
    begins_ad: bool = False
    #: Whether it was received so long before one that its client time puts before it, that this order is wrong.
    runs_back: bool = False

    @property
    def seq(self) -> int:
        """Its number; 0 where it has none."""
        return int(self.beacon.get("seq") or 0)

    @property
    def source(self) -> str:
        """The kind of client."""
        return str(self.beacon["source"])

    @property
    def offset_ms(self) -> int:
        """What to add to its client time to get server time."""
        return int(self.beacon["clock_offset_ms"])

    @property
    def recv_ms(self) -> int:
        """When it was received, by the server's clock."""
        return int(self.beacon["recv_time_ms"])

    @property
    def playhead_ms(self) -> int | None:
        """Where playback was, as it says."""
        return self.beacon.get("playhead_ms")

    @property
    def is_seek(self) -> bool:
        """Whether it begins or ends a seek, or comes during one."""
        return self.name in ("seekstart", "seekend") or (self.source == "cmcd" and self.state == "seeking")

    @property
    def ad(self) -> str:
        """What it says of ads, in mux's words."""
        if self.source == "cmcd":
            return _CMCD_ADS.get(self.name, "")
        name = str(self.attrs.get("ad_event", "")) if self.name == "ad" else self.own_name
        return name if name.startswith("ad") else ""

    @property
    def is_request(self) -> bool:
        """Whether it is a CMCD request record, whose time is that of the request's start."""
        return self.own_name == "rr"


def step(append_ms: int, beacon: dict[str, Any]) -> Step:
    """What one beacon says."""
    attrs = beacon.get("attrs", {})
    own = beacon["source_event"]
    at_ms = beacon["client_time_ms"]
    if beacon["source"] == "cmcd":
        event = own.partition(":")[0]
        state = "" if event == "rr" else _STA.get(str(attrs.get("sta", "")), "")
        return Step(beacon, at_ms, append_ms, event, event, attrs, state)
    name = _NAMES[beacon["source"]].get(own, own)
    if name == "error" and attrs.get("player_error_severity") == "warning":
        name = "warning"
    return Step(beacon, at_ms, append_ms, name, own, attrs, _STATES.get(name, ""))


def shows_view(one: Step) -> bool:
    """Whether a beacon shows that there is a view at all."""
    if one.source == "cmcd":
        return one.state not in ("", "none") or ("msd" in one.attrs and not one.state and not one.is_request)
    if one.source == "mux":
        return one.name == "viewstart"
    return one.name in ("viewstart", "play", "playing")


def is_live(one: Step) -> bool | None:
    """Whether a beacon says that the stream is live; None where it says nothing of that."""
    attrs = one.attrs
    match one.source:
        case "mux":
            said = attrs.get("video_source_is_live")
            return said if said is None else bool(said)
        case "cmcd":
            return {"v": False, "l": True, "ll": True}.get(str(attrs.get("st")))
        case "epas":
            live = attrs.get("live")
            return live if isinstance(live, bool) else None
        case _:
            return {"vod": False, "live": True}.get(str(attrs.get("stream_type")))


def identity(beacon: dict[str, Any]) -> object:
    """What makes two beacons the same."""
    if beacon["source"] == "mux":
        return beacon["seq"]
    if beacon["source"] == "cmcd":
        return beacon["seq"], beacon["client_time_ms"]
    return beacon["client_time_ms"], str(
        {name: beacon.get(name) for name in ("source_event", "seq", "playhead_ms", "attrs")}
    )


def ordered(steps: Sequence[Step]) -> list[Step]:
    """The steps of one play in their order."""
    numbered = all(one.beacon.get("seq") is not None for one in steps)
    if steps[0].source == "native" and numbered:
        return sorted(steps, key=lambda one: (one.seq, one.at_ms, _within_ms(one)))
    if steps[0].source in ("mux", "cmcd"):
        return sorted(steps, key=lambda one: one.seq)
    _set_back(steps, numbered=False)
    return sorted(steps, key=lambda one: (one.at_ms + one.shift_ms, _within_ms(one)))


def _within_ms(one: Step) -> tuple[int, int, int]:
    """The place of a beacon among those of one millisecond."""
    ad = one.attrs.get("ad_event") if one.name == "ad" else _AD_RANKS[0]
    content = [one.beacon.get(name) for name in ("source_event", "seq", "playhead_ms")]
    digest = zlib.crc32(orjson.dumps([*content, one.attrs], option=orjson.OPT_SORT_KEYS))
    rank = _RANKS.index(one.name if one.name in _RANKS else "")
    return rank, _AD_RANKS.index(ad) if ad in _AD_RANKS else len(_AD_RANKS), digest


class Play(NamedTuple):
    """Its beacons in their order; `goes_on` where another play of the same run of numbers comes before it."""

    steps: list[Step]
    goes_on: bool = False


def plays(steps: Sequence[Step]) -> list[Play]:
    """A CMCD session's plays; any other view is one."""
    if steps[0].source != "cmcd":
        return [Play(ordered(steps))]
    found = []
    for run in _runs(steps):
        play = Play([])
        content = None
        for one in ordered(run):
            cid = None if one.is_request else one.attrs.get("cid")
            if cid is not None and content is not None and cid != content:
                found.append(play)
                play = Play([], goes_on=True)
            content = cid or content
            play.steps.append(one)
        found.append(play)
    return found


def _reported_ms(one: Step) -> int:
    reported_ms = one.at_ms + int(one.attrs.get("ttlb", 0)) if one.is_request else one.at_ms
    return reported_ms + one.shift_ms


def _runs(steps: Sequence[Step]) -> list[list[Step]]:
    """The sequence begins again with each beacon 0, and where a number comes a second time."""
    for one in steps:
        one.shift_ms = 0
    _set_back(steps)
    beginnings = sorted(one.at_ms + one.shift_ms for one in steps if one.seq == 0)
    groups: dict[int, list[Step]] = {}
    for one in sorted(steps, key=lambda one: (_reported_ms(one), one.seq)):
        run = sum(begun <= _reported_ms(one) for begun in beginnings)
        sent_ms = one.recv_ms - one.offset_ms + one.shift_ms
        is_early = one.is_request and 0 < run < len(beginnings) and beginnings[run] <= sent_ms
        if is_early and 0 < one.seq < max((other.seq for other in groups.get(run, [])), default=0):
            run += 1
        groups.setdefault(run, []).append(one)
    early = groups.pop(0, [])
    runs = [group for _, group in sorted(groups.items())]
    first = _split(runs[0])[0] if runs else []
    if early and first and not {one.seq for one in early} & {one.seq for one in first} and _is_set_back(early, first):
        runs[0] += early
    elif early:
        runs.insert(0, early)
    return [part for run in runs for part in _split(run)]


def _set_back(steps: Sequence[Step], *, numbered: bool = True) -> None:
    """Moves what was sent by clocks that were set back. Without numbers nothing shows which of it was only delayed."""
    in_order = sorted(steps, key=lambda one: one.at_ms)
    slow = [
        one
        for one in in_order
        if any(
            other.recv_ms < one.recv_ms and other.at_ms > one.at_ms and one.offset_ms - other.offset_ms >= 30_000
            for other in steps
        )
    ]
    places = [(_reported_ms(one), one.seq) for one in in_order if one not in slow]
    slow.sort(key=lambda one: one.offset_ms)
    all_slow = list(slow)
    clocks: list[tuple[int, int, int, int]] = []
    while slow:
        alike = [one for one in slow if one.offset_ms - slow[0].offset_ms <= 5_000]
        slow = [one for one in slow if one not in alike]
        timed = [one for one in alike if not one.is_request]
        if not timed:
            continue
        first = min(timed, key=lambda one: one.at_ms)
        if any(begun <= first.at_ms and abs(first.offset_ms - offset) <= 5_000 for begun, offset, _, _ in clocks):
            continue
        by_clock = [
            one for one in in_order if one.at_ms >= first.at_ms and abs(one.offset_ms - first.offset_ms) <= 5_000
        ]
        shifts = (0, *(clock[2] for clock in clocks))
        late = [one for one in by_clock if one in all_slow]
        lies_between = any(_lies_between(one, shift, places) for one in late for shift in shifts)
        was_delayed = numbered and (lies_between or any(_rises(late, shift, places) for shift in shifts))
        clock = None if was_delayed else _clock(first, in_order, clocks, numbered=numbered)
        clocks += [] if clock is None else [clock]
        places += [(_reported_ms(one) + (0 if clock is None else clock[2]), one.seq) for one in by_clock]
    level = []
    for one in in_order:
        own = [clock for clock in clocks if clock[1] <= one.offset_ms + 5_000 and clock[3] <= one.recv_ms]
        clock = max(own, key=lambda clock: clock[1], default=None)
        one.shift_ms = 0 if clock is None else clock[2]
        if clock is None or one.offset_ms - clock[1] <= 5_000:
            level.append((_reported_ms(one), one.seq))
    level.sort()
    for one in in_order:
        if numbered and (_reported_ms(one), one.seq) not in level:
            _place_between(one, [clock[2] for clock in clocks], level)


#: When a clock began by the client, its offset, what it adds to the first clock's times, when its first beacon was received.
_Clock = tuple[int, int, int, int]


def _shift_of(one: Step, clocks: Sequence[_Clock]) -> int:
    own = [clock for clock in clocks if clock[1] <= one.offset_ms + 5_000 and clock[3] <= one.recv_ms]
    return max(own, key=lambda clock: clock[1])[2] if own else 0


def _clock(first: Step, in_order: Sequence[Step], known: Sequence[_Clock], *, numbered: bool) -> _Clock | None:
    """When it began by the client, its offset, its shift, and when the first beacon by it was received; None if it is none."""
    later = [one for one in in_order if one.at_ms > first.at_ms]
    quick = [one for one in later if first.offset_ms - one.offset_ms >= 30_000]
    before = [one for one in quick if one.recv_ms < first.recv_ms]
    alike = [one for one in later if abs(one.offset_ms - first.offset_ms) <= 5_000]
    zeros = [one.at_ms for one in alike if one.seq == 0] if numbered else []
    own = [one for one in alike if (not zeros or one.at_ms < zeros[0]) and one.at_ms >= first.at_ms + 10_000]
    if not before or not own:
        return None
    shift_ms = first.offset_ms - min(one.offset_ms - _shift_of(one, known) for one in before)
    if any(one.at_ms - first.at_ms >= shift_ms for one in quick):
        return None
    return first.at_ms, first.offset_ms, shift_ms, min(one.recv_ms for one in (first, *own))


def _lies_between(one: Step, shift_ms: int, places: list[tuple[int, int]]) -> bool:
    place = (_reported_ms(one) + shift_ms, one.seq)
    before = max((other for other in places if other < place), default=None)
    after = min((other for other in places if other >= place), default=None)
    return before is not None and after is not None and before[1] < one.seq < after[1]


def _rises(late: Sequence[Step], shift_ms: int, places: list[tuple[int, int]]) -> bool:
    own = sorted((_reported_ms(one) + shift_ms, one.seq) for one in late)
    before = max((other for other in places if other < own[0]), default=None)
    after = min((other for other in places if other > own[-1]), default=None)
    if after is None or (own[0][1] and before is not None and before[1] >= own[0][1]):
        return False
    within = [other for other in places if own[0] <= other <= own[-1]]
    numbers = [seq for _, seq in sorted([*own, *within, after])]
    return numbers == sorted(set(numbers))


def _place_between(one: Step, shifts_ms: list[int], level: list[tuple[int, int]]) -> None:
    """Gives a delayed beacon the latest clock by which its number lies between those around it."""
    first_ms = one.shift_ms
    for shift_ms in sorted({0, *(shift for shift in shifts_ms if shift <= first_ms)}, reverse=True):
        one.shift_ms = shift_ms
        before = [seq for at_ms, seq in level if (at_ms, seq) < (_reported_ms(one), one.seq)]
        after = [seq for at_ms, seq in level if (at_ms, seq) > (_reported_ms(one), one.seq)]
        if not after or after[0] <= one.seq:
            continue
        if (one.seq and before and before[-1] < one.seq) or (not one.seq and (not before or before[-1] >= after[0])):
            return
    one.shift_ms = first_ms


def _is_set_back(early: list[Step], run: list[Step]) -> bool:
    """Whether what was sent before a beginning was not received before it."""
    begun_ms = next(one.beacon["recv_time_ms"] for one in run if one.seq == 0)
    return all(one.beacon["recv_time_ms"] >= begun_ms for one in early)


def _split(run: list[Step]) -> list[list[Step]]:
    parts: list[list[Step]] = [[]]
    # Of one time, by their numbers.
    for one in sorted(run, key=lambda one: (_reported_ms(one), one.seq)):
        goes_on = next((part for part in parts[:-1] if _goes_on(part, parts[-1], one)), None)
        if goes_on is not None:
            goes_on.append(one)
            continue
        if any(other.seq == one.seq or _falls(other, one) for other in parts[-1]):
            parts.append([])
        parts[-1].append(one)
    return parts


def _falls(one: Step, later: Step) -> bool:
    """Whether a beacon has a smaller number than one that was sent well before it by the same clock."""
    if one.is_request or later.is_request or one.seq <= later.seq:
        return False
    return later.at_ms - one.at_ms > 30_000 and abs(later.offset_ms - one.offset_ms) <= 5_000


def _goes_on(part: list[Step], newest: list[Step], one: Step) -> bool:
    """Whether a beacon is of an earlier run: by its number, and by its clock, which is not that of the newest one."""
    if not newest[-1].seq < part[-1].seq < one.seq:
        return False
    delay, others, own = (other.offset_ms - other.shift_ms for other in (one, newest[-1], part[-1]))
    return abs(delay - others) >= 30_000 > abs(delay - own)
