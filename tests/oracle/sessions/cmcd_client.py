"""A session as players send it in CMCD v2 event mode (CTA-5004-B): one record a line, by the habits of each player.

hls.js, dash.js and Shaka differ in what they report (`docs/clients.md`); the reporter reports all that the standard knows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.oracle.rows.meter import Meter, walk
from tests.oracle.rows.requests import T0, Request, Said, batched
from tests.oracle.sessions.viewer import Moment, Play, Session

INTERVAL_MS: Final = {"hls.js": 10_000, "dash.js": 30_000, "shaka": 30_000, "reporter": 10_000}
_STATES: Final = {
    "starting": "s",
    "playing": "p",
    "paused": "a",
    "rebuffering": "r",
    "seeking": "k",
    "failed": "f",
    "ended": "e",
    "ad": "p",
    "ad paused": "p",
    "ad waiting": "p",
}
_ADS: Final = {"adbreakstart": "abs", "adbreakend": "abe", "adplaying": "as", "adended": "ae"}
_CHANGES: Final = frozenset(
    {"start", "playing", "resume", "pause", "stall", "unstall", "seek", "seeked", "ended", "error"}
)


@dataclass(slots=True)
class Totals:
    """Counters of the plays before in the session, for a player that counts since the session began."""

    stalls: int = 0
    stall_ms: int = 0
    frames: int = 0

    def add(self, meter: Meter) -> None:
        """Adds a play that is over."""
        self.stalls += len(meter.stalls)
        self.stall_ms += sum(meter.stalls)
        self.frames += meter.in_state_ms["playing"] // 7_000


def requests(session: Session) -> list[Request]:
    """The POSTs of a session: one record each, or up to three where the player's batch is larger."""

    def body(lines: Sequence[object], at_ms: int) -> bytes:
        return "\n".join(str(line) for line in lines).encode()

    size = 1 + session.number // 10 % 3
    return batched(_records(session), 1 << 60, "cmcd", body, session, size_max=size)


def _records(session: Session) -> Iterator[Said]:
    number = 0
    totals = Totals()
    restarts = session.client == "hls.js" or "cid" not in session.habits
    for place, play in enumerate(session.plays):
        if restarts or place == 0:
            number = 0
        last = play is session.plays[-1]
        for at_ms, keys in _play(session, play, totals, last=last):
            record = {"sid": session.id, "sn": number, "v": 2} | keys
            number += 1
            yield Said(at_ms, _line(record))


def _play(session: Session, play: Play, totals: Totals, *, last: bool) -> Iterator[tuple[int, dict[str, object]]]:
    beat_ms = INTERVAL_MS[session.client]
    before = None
    for moment, meter in walk(play, beat_ms, tuple(_STATES)):
        state = _STATES.get(meter.state)
        for event, own in _events(session, moment, meter, state, last=last):
            keys = (
                _common(session, play, totals, meter, clock_ms=T0 + session.clock_ms(moment.at_ms), state=state)
                | own
                | {"e": event}
            )
            if session.client == "shaka":
                keys.pop("sta", None)
            if event == "ps" and keys.get("sta") == before and event != "rr":
                continue
            before = keys.get("sta", before) if event == "ps" else before
            yield moment.at_ms, {key: value for key, value in keys.items() if value is not None}
    if "total" in session.habits:
        totals.add(meter)


def _events(
    session: Session, moment: Moment, meter: Meter, state: str | None, *, last: bool
) -> Iterator[tuple[str, dict[str, object]]]:
    """The records of one moment, each with the keys that it has alone."""
    client, kind = session.client, moment.kind
    reports_all = client == "reporter"
    if kind in _CHANGES and not (kind == "error" and client == "hls.js"):
        startup = meter.startup_ms if kind == "playing" and client != "hls.js" and len(meter.seeks) == 0 else None
        keys: dict[str, object] = {"msd": startup} if not meter.has_played or startup == _since(meter, moment) else {}
        if kind == "unstall" and "bsd" in session.habits and client in ("dash.js", "reporter"):
            keys["bsd"] = [meter.stalls[-1]]
        yield "ps", keys
    if kind in ("beat", "load"):
        yield "t", {}
    elif kind in ("warning", "error"):
        # hls.js reports an error before it decides that it is fatal; the page's own event says so.
        yield "e", {"ec": [moment.text] if reports_all else moment.text if client == "dash.js" else None}
        if kind == "error" and client == "hls.js":
            yield "ce", {"cen": f"playhead-error:{moment.text}"}
    elif kind in ("rendition", "start") and client != "dash.js":
        yield "bc", {}
    elif kind == "rate":
        yield "pr", {"pr": moment.number / 100}
    elif kind in _ADS and reports_all:
        yield _ADS[kind], {}
    elif kind == "close" and reports_all and last and state is not None:
        yield "ps", {"sta": "q"}
    elif kind == "tick" and session.reports_requests:
        took_ms = 90 + moment.at_ms % 900
        begun_ms = T0 + session.clock_ms(moment.at_ms) - took_ms
        code = 404 if moment.at_ms % 5 == 0 else 200
        yield (
            "rr",
            {"rc": code, "ttfb": took_ms // 3, "ttlb": took_ms, "ts": begun_ms, "br": [meter.bitrate_bps // 500]},
        )


def _since(meter: Meter, moment: Moment) -> int:
    return moment.at_ms - meter.started_ms


def _common(
    session: Session, play: Play, totals: Totals, meter: Meter, *, clock_ms: int, state: str | None
) -> dict[str, object]:
    client, kbps = session.client, meter.bitrate_bps // 1_000
    has = session.habits.__contains__
    keys: dict[str, object] = {"ts": clock_ms, "cid": play.video_id, "st": "l" if play.live else "v", "sta": state}
    if state is not None:
        keys |= {"br": [kbps]} if client != "dash.js" else {"pb": [kbps]}
        if has("pb") and client == "hls.js":
            keys["pb"] = [kbps]
    if client == "reporter":
        keys["pt"] = meter.playhead_ms if has("pt") else None
        keys["dfa"] = totals.frames + meter.in_state_ms["playing"] // 7_000 if has("dfa") else None
        keys["h"] = "media.example.com" if has("h") else None
        keys["cdn"] = "fastly"
        if meter.stalls or totals.stalls:
            keys |= {"bsa": [totals.stalls + len(meter.stalls)], "bsda": [totals.stall_ms + sum(meter.stalls)]}
    if has("ltc") and play.live and state == "p" and client != "hls.js":
        keys["ltc"] = 5_000 + meter.playhead_ms % 1_000
    return keys


def _line(record: dict[str, object]) -> str:
    return ",".join(f"{key}={_item(key, record[key])}" for key in sorted(record))


def _item(key: str, value: object) -> str:
    if isinstance(value, list):
        return f"({' '.join(_item(key, one) for one in value)})"
    if isinstance(value, str) and key not in ("e", "st", "sta", "ec"):
        return f'"{value}"'
    if isinstance(value, str) and key == "ec":
        return f'"{value}"'
    return str(value)
