"""The oracle: a view's row computed from the set of its beacons, by the definitions of `docs/view.md` alone.

Sources of the definitions: Mux's public metric definitions, CTA-5004-B. It shares no code with the fold, has no state and
no order of arrival: it looks at all beacons of a play at once.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from tests.oracle.rows.advertising import ads, content_startup_ms
from tests.oracle.rows.details import client_knows, requests, stream
from tests.oracle.rows.integration import Integrated, integrated
from tests.oracle.rows.playing import failure_of_cmcd, startup
from tests.oracle.rows.plays import plays
from tests.oracle.rows.reading import Step, identity, shows_view, step
from tests.oracle.rows.scoring import scores
from tests.oracle.rows.timeline import player_measured, timeline
from tests.oracle.rows.walk import DAY_MS, Span, Walk
from tests.oracle.sessions.delivery import Delivered

LONG_REBUFFER_MS: Final = 300_000
Row = dict[str, Any]

#: What mux counts itself.
_COUNTERS: Final = {
    "watch_ms": "view_watch_time",
    "playing_ms": "view_playing_time_ms_cumulative",
    "content_playback_ms": "view_content_playback_time",
    "rebuffer_count": "view_rebuffer_count",
    "rebuffer_ms": "view_rebuffer_duration",
    "seek_count": "view_seek_count",
    "seek_ms": "view_seek_duration",
    "max_seek_ms": "view_max_seek_time",
    "max_playhead_ms": "view_max_playhead_position",
    "ad_playing_ms": "ad_playing_time_ms_cumulative",
}
_NO_ERROR: Final[Row] = {
    "error_code": None,
    "error_message": None,
    "error_context": None,
    "error_severity": None,
    "business_exception": False,
}
_ERRORS: Final[dict[str, tuple[str, ...]]] = {
    "mux": (
        "player_error_code",
        "player_error_message",
        "player_error_context",
        "player_error_severity",
        "player_error_business_exception",
    ),
    "native": tuple(_NO_ERROR),
    "epas": ("code", "message", "category", "", ""),
}


def expected(delivered: Iterable[Delivered]) -> dict[str, Row]:
    """The rows of one key, by view id."""
    kept: dict[object, Step] = {}
    copies: dict[object, list[Step]] = {}
    for one in delivered:
        read, key = step(one.append_ms, one.beacon), identity(one.beacon)
        copies.setdefault(key, []).append(read)
        # Of a beacon that came twice the smaller receive time counts, then the smaller offset.
        if key not in kept or _received(read) < _received(kept[key]):
            kept[key] = read
    came = {id(one): copies[key] for key, one in kept.items()}
    found = plays(list(kept.values()))
    day = min(one.append_ms for every in copies.values() for one in every) // DAY_MS
    rows = {}
    delay_ms: int | None = None
    for number, (play, goes_on) in enumerate(found, start=1):
        walk = Walk(play, delay_ms)
        delay_ms = walk.delay_after_ms
        if not any(map(shows_view, play)):
            continue
        every = [one for own in play for one in came[id(own)]]
        earlier = [other.steps for other in found[: number - 1]]
        following = found[number] if number < len(found) else None
        row = _row(play, walk.spans, every, earlier, goes_on=goes_on, is_last=following is None)
        if following is not None and following.goes_on:
            # Numbers that are missing between two plays of one run count to the earlier one.
            row["seq_gaps"] += following.steps[0].seq - max(one.seq for one in play) - 1
            row["complete"] = row["complete"] and not row["seq_gaps"]
        row |= {
            "view_id": play[0].beacon["view_id"] + (f".{number}" if number > 1 else ""),
            "view_epoch": number,
            "day": day,
            "beacon_count": len(play),
            "duplicate_count": len(every) - len(play),
        }
        rows[row["view_id"]] = row
    return rows


def _received(one: Step) -> tuple[int, int]:
    return one.beacon["recv_time_ms"], one.offset_ms


def _row(
    play: Sequence[Step],
    spans: Sequence[Span],
    every: Sequence[Step],
    earlier: Sequence[Sequence[Step]],
    *,
    goes_on: bool,
    is_last: bool,
) -> Row:
    last = {name: value for one in play for name, value in one.attrs.items() if value is not None}
    times = integrated(spans)
    steps = sum(span.stepped + span.set_back for span in spans)
    offset_ms = spans[0].step.offset_ms if steps else min(one.offset_ms for one in every)
    begun = next(span for span in spans if shows_view(span.step))
    row: Row = {
        "customer_id": play[0].beacon["customer_id"],
        "source": play[0].source,
        "first_append_ms": min(one.append_ms for one in every),
        "last_append_ms": max(one.append_ms for one in every),
        "view_start_ms": begun.at_ms + offset_ms,
        "view_end_ms": _end_ms(play, spans) + offset_ms,
        "watch_ms": times.watch_ms,
        "playing_ms": times.in_state_ms["playing"],
        "content_playback_ms": times.in_state_ms["playing"],
        "rebuffer_count": times.stalls,
        "rebuffer_ms": times.in_state_ms["rebuffering"],
        "seek_count": len(times.seeks),
        "seek_ms": sum(times.seeks),
        "max_seek_ms": max(times.seeks, default=0),
        "max_playhead_ms": max((one.playhead_ms or 0 for one in play), default=0),
        "bitrate_integral": times.bitrate_integral,
        "bitrate_time_ms": times.bitrate_time_ms,
        "avg_bitrate_bps": times.bitrate_integral // times.bitrate_time_ms if times.bitrate_time_ms else None,
        "rendition_up": times.ups,
        "rendition_down": times.downs,
        "goes_on": goes_on,
        "seq_gaps": _missing(play, goes_on=goes_on),
        "gap_ms": sum(span.gap_ms + min(span.missing_ms, DAY_MS) for span in spans),
        "gap_count": sum((span.gap_ms > 0) + (span.missing_ms > 0) for span in spans),
        "clock_step_count": steps,
        **ads(spans),
        **startup(play, spans, stalled=bool(_of_play(play, earlier, "bsa"))),
        **client_knows(play, last, times.scaled),
        **requests(play),
        **stream(play, spans, last, offset_ms),
    }
    row["content_startup_ms"] = content_startup_ms(row, spans)
    if row["source"] == "mux":
        row |= _counted_by_mux(row, last, offset_ms) | _differences(last, times)
    elif row["source"] == "cmcd":
        row |= _stalls_of_cmcd(play, times, earlier)
    stall_ms, play_ms, watch_ms = row["rebuffer_ms"], row["playing_ms"], row["watch_ms"]
    row["rebuffer_fraction"] = min(1.0, stall_ms / watch_ms) if watch_ms else None
    row["rebuffer_ratio"] = stall_ms / (stall_ms + play_ms) if stall_ms + play_ms else None
    failure = failure_of_cmcd(play, spans) if row["source"] == "cmcd" else _last_error(play)
    row["player_measured"] = player_measured(play, last, row)
    row["events"] = timeline(spans, begun)
    row |= _outcome(play, row, failure, times, _seen_last(spans), is_last=is_last)
    return row | scores(row)


def _differences(last: Row, times: Integrated) -> Row:
    """mux's counters less our integration; mux counts the time in which an ad plays as watched and played."""
    found = {}
    for field, ours in (
        ("watch", times.watch_ms + times.ad_watched_ms),
        ("playing", times.in_state_ms["playing"] + times.ad_played_ms),
        ("rebuffer", times.in_state_ms["rebuffering"]),
    ):
        reported = last.get(_COUNTERS[f"{field}_ms"])
        found[f"{field}_difference_ms"] = None if reported is None else reported - ours
    count = last.get("view_rebuffer_count")
    return found | {"rebuffer_count_difference": None if count is None else count - times.stalls}


def _end_ms(play: Sequence[Step], spans: Sequence[Span]) -> int:
    """The latest time in corrected time: of the last timed beacon, or, if no clock stepped, of a request."""
    last = spans[-1]
    if any(span.stepped or span.set_back for span in spans):
        return last.at_ms
    return max([last.at_ms, *(one.at_ms + last.at_ms - last.step.at_ms for one in play if one.is_request)])


def _missing(play: Sequence[Step], *, goes_on: bool) -> int:
    """How many numbers up to the largest were never seen; of a play that goes on with a run from its smallest number on."""
    numbers = sorted({one.seq for one in play if one.beacon.get("seq") is not None})
    first = 1 if play[0].source != "cmcd" else numbers[0] if goes_on else 0
    return sum(after - before - 1 for before, after in pairwise([first - 1, *numbers])) if numbers else 0


def _counted_by_mux(row: Row, last: Row, offset_ms: int) -> Row:
    found: Row = {field: last.get(name, 0) for field, name in _COUNTERS.items() if field != "ad_playing_ms"}
    found["ad_playing_ms"] = last.get("ad_playing_time_ms_cumulative", row["ad_playing_ms"])
    if "view_start" in last:
        found["view_start_ms"] = last["view_start"] + offset_ms
    found["rebuffer_source"] = "counters"
    return found


def _reported(play: Sequence[Step], name: str) -> list[int]:
    values = [one.attrs[name] for one in play if name in one.attrs]
    return [int(value[0][0]) if isinstance(value, list) else int(value) for value in values]


def _of_play(play: Sequence[Step], earlier: Sequence[Sequence[Step]], name: str) -> int | None:
    """A counter of the session as the play's: what it says last, less what it said last before, unless the client began again."""
    before: dict[str, int] = {}
    for one in (*earlier, play):
        counters = {key: values for key in ("bsa", "bsda", "dfa") if (values := _reported(one, key))}
        if any(min(values) < before.get(key, 0) for key, values in counters.items()):
            before = {}
        if one is play:
            return counters[name][-1] - before.get(name, 0) if name in counters else None
        before |= {key: values[-1] for key, values in counters.items()}
    return None


def _stalls_of_cmcd(play: Sequence[Step], times: Integrated, earlier: Sequence[Sequence[Step]]) -> Row:
    count, duration = (_of_play(play, earlier, name) for name in ("bsa", "bsda"))
    states: Row = {"rebuffer_count": times.stalls, "rebuffer_ms": times.in_state_ms["rebuffering"]}
    found: Row = {"rebuffer_source": "states" if count is None and duration is None else "counters"}
    listed = [entry[0] for one in play for entry in one.attrs.get("bsd", [])]
    if listed and not times.stalls and duration is None:
        found = {"rebuffer_source": "stalls" if count is None else "counters", "rebuffer_ms": sum(listed)}
        found["rebuffer_count"] = len(listed)
    if count is not None:
        found["rebuffer_count"] = count
    if duration is not None:
        found["rebuffer_ms"] = duration
    differs = {"rebuffer_count": "rebuffer_count_difference", "rebuffer_ms": "rebuffer_difference_ms"}
    found |= {name: found[field] - states[field] if field in found else None for field, name in differs.items()}
    return found | {"dropped_frames": _of_play(play, earlier, "dfa")}


def _last_error(play: Sequence[Step]) -> Step | None:
    return next((one for one in reversed(play) if one.name == "error"), None)


def _seen_last(spans: Sequence[Span]) -> str:
    """The last state of a play; of one that ended, the state before its end."""
    state = spans[-1].state
    for span in reversed(spans):
        if span.state != "ended":
            break
        state = span.before
    return state


def _outcome(
    play: Sequence[Step], row: Row, failure: Step | None, times: Integrated, last_state: str, *, is_last: bool
) -> Row:
    """How it ended, and whether it failed."""
    ended = any(one.name in ("ended", "viewend") or (one.state == "ended" and not one.is_request) for one in play)
    stalled_ms = max(times.in_state_ms["rebuffering"], row["rebuffer_ms"] if row["source"] == "mux" else 0)
    if last_state == "rebuffering" and stalled_ms >= LONG_REBUFFER_MS:
        reason = "long_rebuffer"
    elif ended:
        reason = "clean"
    elif failure is not None:
        reason = "error"
    else:
        reason = "timeout" if is_last else "superseded"
    error = _NO_ERROR if failure is None else _error(play, failure)
    failed = failure is not None and not error["business_exception"]
    first = 0 if row["source"] == "cmcd" else 1
    numbered = row["source"] != "epas" and all(one.beacon.get("seq") is not None for one in play)
    whole = (
        (row["goes_on"] or any(one.seq == first for one in play)) and not row["seq_gaps"]
        if numbered
        else not row["gap_count"] and not any(one.runs_back for one in play)
    )
    return error | {
        "end_reason": reason,
        "view_dropped": reason in ("timeout", "long_rebuffer"),
        "playback_failed": failed,
        "startup_failed": failed and not row["played"],
        "ebvs": failure is None and not row["played"],
        "truncated": False,
        "late_count": 0,
        "complete": ended and whole,
    }


def _error(play: Sequence[Step], failure: Step) -> Row:
    if failure.source != "cmcd":
        values = [failure.attrs.get(name) for name in _ERRORS[failure.source]]
        code = None if values[0] is None else str(values[0])
        return dict(zip(_NO_ERROR, [code, *values[1:4], bool(values[4])], strict=True))
    codes = [_code(one) for one in play if one.name in ("e", "ce") or one.attrs.get("sta") == "f"]
    return _NO_ERROR | {"error_code": next((code for code in reversed(codes) if code), None)}


def _code(one: Step) -> str | None:
    if one.name == "ce":
        return str(one.attrs["cen"]).partition(":")[2]
    code = one.attrs.get("ec")
    return None if code is None else str(code[0][0] if isinstance(code, list) else code)
