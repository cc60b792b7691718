"""The oracle's sums over a walk: how long a play was in each state, and what was known of the bitrate meanwhile."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.oracle.rows.reading import Step
from tests.oracle.rows.walk import Span

_WATCHED: Final = ("starting", "playing", "rebuffering", "early rebuffering", "seeking")
#: The largest sum of bitrates that a row has.
_INTEGRAL_MAX: Final = 1 << 60
_SIZES: Final = ("player_width", "player_height", "source_width", "source_height")


@dataclass(slots=True)
class Integrated:
    """Times in ms, bitrates in bps."""

    in_state_ms: Counter[str] = field(default_factory=Counter)
    #: Seeks of a viewer who had paused: part of the time in seeking, no part of the watch time.
    paused_seek_ms: int = 0
    stalls: int = 0
    seeks: list[int] = field(default_factory=list)
    bitrate_integral: int = 0
    bitrate_time_ms: int = 0
    ups: int = 0
    downs: int = 0
    #: Time in which an ad plays and the state says that nothing is watched, or that nothing plays.
    ad_watched_ms: int = 0
    ad_played_ms: int = 0
    #: Player size by source size, and for how long.
    scaled: list[tuple[float, int]] = field(default_factory=list)

    @property
    def watch_ms(self) -> int:
        """Time in which the viewer watched or waited."""
        return sum(self.in_state_ms[state] for state in _WATCHED) - self.paused_seek_ms


def integrated(spans: Sequence[Span]) -> Integrated:
    """The sums over a play's spans."""
    result = Integrated()
    bitrate: int | None = None
    scale: dict[str, Any] = {}
    before_seek = ""
    for span in spans:
        one, state, before = span.step, span.state, span.before
        if state == "seeking" and before != "seeking":
            result.seeks.append(0)
            before_seek = before
        stalls = state == "rebuffering" and before != "rebuffering" and span.has_played
        result.stalls += stalls and not (before == "seeking" and before_seek == "rebuffering")
        known, bitrate = bitrate, _bitrate(one, bitrate)
        if known is not None and bitrate is not None and (one.name in ("rendition", "bc") or "pb" in one.attrs):
            result.ups += bitrate > known
            result.downs += bitrate < known
        scale |= {name: one.attrs[name] for name in _SIZES if name in one.attrs}
        rest_ms = span.ms - span.played_ms
        result.in_state_ms["early rebuffering" if state == "rebuffering" and not span.has_played else state] += rest_ms
        if state == "seeking":
            result.seeks[-1] += rest_ms
            result.paused_seek_ms += rest_ms if before_seek == "paused" else 0
        played_ms = span.ms if state == "playing" else span.played_ms
        result.in_state_ms["playing"] += 0 if state == "playing" else played_ms
        if span.in_ad:
            is_watched = state in _WATCHED and not (state == "seeking" and before_seek == "paused")
            result.ad_watched_ms += 0 if is_watched else rest_ms
            result.ad_played_ms += 0 if state == "playing" else rest_ms
        if bitrate is not None:
            result.bitrate_integral += bitrate * played_ms
            result.bitrate_time_ms += played_ms
        if len(scale) == len(_SIZES) and played_ms:
            sides = (scale[f"player_{side}"] / scale[f"source_{side}"] for side in ("width", "height"))
            result.scaled.append((min(sides), played_ms))
    result.bitrate_integral = min(result.bitrate_integral, _INTEGRAL_MAX)
    return result


def _bitrate(one: Step, known: int | None) -> int | None:
    """The bitrate known after a beacon, bps."""
    attrs = one.attrs
    match one.source:
        case "mux":
            value, factor = attrs.get("video_source_bitrate"), 1
        case "native":
            value, factor = attrs.get("bitrate_bps"), 1
        case "epas":
            value, factor = attrs.get("bitrate") if one.name == "rendition" else None, 1_000
        case _:
            value, factor = _of_list(attrs.get("pb", attrs.get("br"))), 1_000
    return known if value is None else round(value * factor)


def _of_list(value: Any) -> Any:
    """The video's entry of a CMCD list, else its first."""
    if not isinstance(value, list):
        return value
    return next((entry[0] for entry in value if entry[1] == "v"), value[0][0] if value else None)
