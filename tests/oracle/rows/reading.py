"""The oracle's reading of beacons: what each says, and the state after it.

Written from the words of `docs/view.md` (Events, State). It shares no code with the fold.
"""

from dataclasses import dataclass
from typing import Any, Final

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
    at_ms = _time_ms(beacon)
    if beacon["source"] == "cmcd":
        event = own.partition(":")[0]
        state = "" if event == "rr" else _STA.get(str(attrs.get("sta", "")), "")
        return Step(beacon, at_ms, append_ms, event, event, attrs, state)
    name = _NAMES[beacon["source"]].get(own, own)
    if name == "error" and attrs.get("player_error_severity") == "warning":
        name = "warning"
    return Step(beacon, at_ms, append_ms, name, own, attrs, _STATES.get(name, ""))


def _time_ms(beacon: dict[str, Any]) -> int:
    """The client time; 1 for 0."""
    return int(beacon["client_time_ms"]) or 1


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
        return beacon["seq"], _time_ms(beacon)
    return _time_ms(beacon), str({name: beacon.get(name) for name in ("source_event", "seq", "playhead_ms", "attrs")})
