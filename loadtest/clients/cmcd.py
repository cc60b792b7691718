"""A story as CMCD v2 event mode (hls.js 1.7, dash.js 5.2, or a custom reporter): one line per record. Pure.

The clients report different fields. hls.js sends no startup time and no playhead; dash.js sends the startup time (`msd`) and an
error code without list and quotes; both send nothing when the page closes. The reporter sends everything, also its end (`sta=q`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from loadtest.expected.tally import WATCHING, Tally, tally
from loadtest.expected.truth import SimulatedBeacon
from loadtest.story import Story

SEGMENT_MS: Final = 4_000
_INTERVAL_MS: Final = {"hls.js": 10_000, "dash.js": 30_000, "cmcd-reporter": 10_000}
_STA: Final = {
    "starting": "s",
    "playing": "p",
    "paused": "a",
    "rebuffering": "r",
    "seeking": "k",
    "failed": "f",
    "ended": "e",
}
_EVENTS: Final[dict[str, tuple[str, ...]]] = {
    "load": ("t",),
    "start": ("ps", "bc"),
    "rendition": ("bc",),
    "warning": ("e",),
    "error": ("ps", "e"),
    "close": ("ps",),
    "crash": (),
}


class _Record(NamedTuple):
    at_ms: int
    event: str
    #: rr: when the request was begun, which is what the record is dated.
    begun_ms: int = 0


def beacons(story: Story, loaded_ms: int) -> list[SimulatedBeacon]:
    """The view's records in order; `loaded_ms` is the page load on the player's clock."""
    emitted = []
    for seq, record in enumerate(_schedule(story)):
        emitted.append(SimulatedBeacon(seq, record.at_ms, record.event, line=_line(story, seq, record, loaded_ms)))
    return emitted


def body(story: Story, records: Sequence[SimulatedBeacon]) -> bytes:
    """The body of one POST. The reporter library inside hls.js and dash.js ends it with a line feed, the newest does not."""
    text = "\n".join(record.line for record in records)
    return (text if story.player.client == "cmcd-reporter" else text + "\n").encode()


def _schedule(story: Story) -> list[_Record]:
    """Every record; at equal times what happened comes first."""
    client = story.player.client
    marks_end = story.player.marks_its_end and story.first("start") is not None
    moments = [moment for moment in story.moments if moment.kind != "close" or marks_end]
    happened = [_Record(moment.at_ms, event) for moment in moments for event in _EVENTS.get(moment.kind, ("ps",))]
    if client == "dash.js":
        happened = [record for record in happened if record.event != "bc"]
    if client == "cmcd-reporter":
        # Its state is preloading: still no view.
        happened.append(_Record(1, "ps"))
    end_ms = story.moments[-1].at_ms
    ticks = [_Record(at_ms, "t") for at_ms in range(_INTERVAL_MS[client], end_ms, _INTERVAL_MS[client])]
    requests = _requests(story, end_ms) if story.player.reports_requests else []
    return sorted(happened + ticks + requests, key=lambda record: record.at_ms)


def _requests(story: Story, end_ms: int) -> list[_Record]:
    """One record a segment, made when its request is answered and dated when it was begun."""
    start = story.first("start")
    if start is None:
        return []
    records = []
    for number, begun_ms in enumerate(range(start.at_ms + 50, end_ms, SEGMENT_MS)):
        answered_ms = begun_ms + 120 + number * 137 % 700
        if answered_ms < end_ms and tally(story, begun_ms).state in WATCHING:
            records.append(_Record(answered_ms, "rr", begun_ms))
    return records


def _line(story: Story, seq: int, record: _Record, loaded_ms: int) -> str:
    at_ms, event, begun_ms = record
    player, seen = story.player, tally(story, at_ms)
    is_request = event == "rr"
    keys = {
        "cid": f'"{player.video_id}"',
        "e": event,
        "mtp": "(25500)",
        "sf": "d" if player.client == "dash.js" else "h",
        "sid": f'"{player.view_id}"',
        "sn": str(seq),
        "st": ("ll" if player.client == "cmcd-reporter" else "l") if player.live else "v",
        "ts": str(loaded_ms + (begun_ms if is_request else at_ms)),
        "v": "2",
    }
    sta = _sta(story, seen, at_ms, event)
    if sta is not None:
        keys["sta"] = sta
    if seen.state != "idle":
        keys |= _bitrates(story, seen, is_request=is_request, is_start=event == "ps" and sta == "s")
    if is_request:
        keys |= _request(player.video_id, seq)
    elif player.client != "hls.js":
        keys |= _measures(story, seen, at_ms, event)
    if player.client == "cmcd-reporter":
        keys |= {"cdn": f'"{player.cdn}"', "pt": str(seen.playhead_ms)}
    if event == "e" or sta == "f":
        keys |= _error(story, seen)
    return ",".join(f"{key}={keys[key]}" for key in sorted(keys))


def _sta(story: Story, seen: Tally, at_ms: int, event: str) -> str | None:
    close = story.first("close")
    if close is not None and at_ms >= close.at_ms:
        return "q"
    if seen.state == "idle":
        return "d" if event == "ps" else None
    return _STA[seen.state]


def _bitrates(story: Story, seen: Tally, *, is_request: bool, is_start: bool) -> dict[str, str]:
    """What is known of the bitrate, kbps: nothing before the first `bc`; in `rr`, `br` is that of the object requested."""
    if is_start:
        return {}
    kbps = seen.bitrate_bps // 1_000
    # The player asks for a higher rendition than it plays: it is not the playing bitrate.
    encoded = {"br": f"({kbps * 2};v 128;a)"} if is_request else {"br": f"({kbps};v 128;a)"}
    match story.player.client:
        case "hls.js":
            return {**encoded, "pb": f"({kbps})", "bl": "(1200;v)"}
        case "dash.js":
            return {"pb": f"({kbps};v)", "tpb": "(6000;v)"} | (encoded if is_request else {})
        case _:
            return encoded


def _measures(story: Story, seen: Tally, at_ms: int, event: str) -> dict[str, str]:
    """What dash.js and the reporter measure themselves: the startup, once; the reporter also all its rebuffering so far."""
    keys = {}
    playing = story.first("playing")
    if event == "ps" and playing is not None and at_ms == playing.at_ms:
        keys["msd"] = str(seen.startup_ms)
    if story.player.client == "cmcd-reporter" and seen.rebuffer_count:
        keys |= {"bsa": f"({seen.rebuffer_count})", "bsda": f"({seen.in_state_ms['rebuffering']})"}
    return keys


def _request(video_id: str, seq: int) -> dict[str, str]:
    return {
        "d": str(SEGMENT_MS),
        "ot": "v",
        "rc": "200",
        "ttfb": "40",
        "ttlb": "120",
        "url": f'"https://media.example.com/{video_id}/{seq}.m4s?token=a,b"',
    }


def _error(story: Story, seen: Tally) -> dict[str, str]:
    if seen.reported is None:
        return {}
    code = seen.reported.code
    return {"ec": code if story.player.client == "dash.js" else f'("{code}")'}
