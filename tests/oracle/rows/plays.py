"""The oracle's order of beacons, and the plays of a CMCD session.

Written from the words of `docs/view.md` (Order, Plays of a CMCD session).
"""

import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from tests.oracle.rows.clocks import reported_ms, set_back
from tests.oracle.rows.reading import Step

#: What happened in one millisecond, in this order; the empty name stands for all other events.
_RANKS: Final = (
    *("viewstart", "play", "rendition", "seekend", "rebufferend", "playing", ""),
    *("pause", "rebufferstart", "seekstart", "error", "ended", "viewend"),
)
_AD_RANKS: Final = ("adbreakstart", "adplay", "adplaying", "adpause", "adended")


def ordered(steps: Sequence[Step]) -> list[Step]:
    """The steps of one play in their order."""
    numbered = all(one.beacon.get("seq") is not None for one in steps)
    if steps[0].source == "native" and numbered:
        return sorted(steps, key=lambda one: (one.seq, one.at_ms, _within_ms(one)))
    if steps[0].source in ("mux", "cmcd"):
        return sorted(steps, key=lambda one: one.seq)
    set_back(steps, numbered=False)
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


def _runs(steps: Sequence[Step]) -> list[list[Step]]:
    """The sequence begins again with each beacon 0, and where a number comes a second time."""
    for one in steps:
        one.shift_ms = 0
    set_back(steps)
    beginnings = sorted(one.at_ms + one.shift_ms for one in steps if one.seq == 0)
    groups: dict[int, list[Step]] = {}
    for one in sorted(steps, key=lambda one: (reported_ms(one), one.seq)):
        run = sum(begun <= reported_ms(one) for begun in beginnings)
        sent_ms = one.recv_ms - one.offset_ms + one.shift_ms
        is_early = one.is_request and 0 < run < len(beginnings) and beginnings[run] <= sent_ms
        if is_early and 0 < one.seq < max((other.seq for other in groups.get(run, [])), default=0):
            run += 1
        groups.setdefault(run, []).append(one)
    early = groups.pop(0, [])
    runs = [group for _, group in sorted(groups.items())]
    first = _split(runs[0])[0] if runs else []
    if early and first and not {one.seq for one in early} & {one.seq for one in first} and _isset_back(early, first):
        runs[0] += early
    elif early:
        runs.insert(0, early)
    return [part for run in runs for part in _split(run)]


def _isset_back(early: list[Step], run: list[Step]) -> bool:
    """Whether what was sent before a beginning was not received before it."""
    begun_ms = next(one.beacon["recv_time_ms"] for one in run if one.seq == 0)
    return all(one.beacon["recv_time_ms"] >= begun_ms for one in early)


def _split(run: list[Step]) -> list[list[Step]]:
    parts: list[list[Step]] = [[]]
    # Of one time, by their numbers.
    for one in sorted(run, key=lambda one: (reported_ms(one), one.seq)):
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
