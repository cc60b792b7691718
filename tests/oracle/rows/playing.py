"""The oracle's answer to whether and when a play began to play, and whether it failed.

Written from `docs/view.md`, sections Whether and when a view played, Failures of a CMCD play.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from tests.oracle.rows.reading import Step, shows_view
from tests.oracle.rows.walk import DAY_MS, Span

_COUNTERS: Final = (
    "view_playing_time_ms_cumulative",
    "view_content_playback_time",
    "view_total_content_playback_time",
    "view_rebuffer_count",
)
#: The client's own counter of its start-up time.
_OWN: Final = {"mux": "view_time_to_first_frame", "native": "startup_ms"}


def startup(play: Sequence[Step], spans: Sequence[Span], *, stalled: bool) -> dict[str, Any]:
    """`startup_ms`, why it is not known, the most that it can have been, and whether anything played.

    `stalled`: the client counted stalls in it.
    """
    _mark_ads(play)
    signs = _signs(play, spans) or ([(len(play), spans[-1].at_ms)] if stalled else [])
    frame = _first_frame(spans)
    begun = next((span for span in spans if shows_view(span.step)), None)
    own = _own(play)
    reason = None if own is not None else _unknown(play, spans, signs, frame, begun)
    startup_ms = own
    if reason is None and own is None and frame is not None and begun is not None:
        startup_ms = min(max(0, frame.at_ms - begun.at_ms - _gaps_ms(spans, frame.at_ms)), DAY_MS)
    bound = None
    if reason == "first_frame_lost" and begun is not None:
        played_ms = min(at_ms for _, at_ms in signs)
        bound = min(max(0, played_ms - begun.at_ms - _gaps_ms(spans, played_ms)), DAY_MS)
    return {
        "startup_ms": startup_ms,
        "startup_unknown": None if startup_ms is not None else reason,
        "startup_ms_max": bound,
        "played": bool(signs),
    }


def _mark_ads(play: Sequence[Step]) -> None:
    """An adplaying begins an ad unless it follows adpause or adplaying: then it is a resume."""
    playing = paused = False
    for one in play:
        match one.ad:
            case "adplaying":
                one.begins_ad = not (playing or paused)
                playing, paused = True, False
            case "adplay":
                playing = False
            case "adpause":
                playing, paused = False, True
            case "adbreakstart" | "aderror" | "adended" | "adbreakend":
                playing = paused = False


def _gaps_ms(spans: Sequence[Span], until_ms: int) -> int:
    """The gaps before a time."""
    return sum(span.gap_ms + span.missing_ms for span in spans if span.at_ms < until_ms)


def _own(play: Sequence[Step]) -> int | None:
    source = play[0].source
    if source == "cmcd":
        durations = [one.attrs["msd"] for one in play if "msd" in one.attrs and one.attrs.get("sta") not in ("s", "d")]
        return int(durations[-1]) if durations else None
    values = [one.attrs[_OWN[source]] for one in play if source in _OWN and _OWN[source] in one.attrs]
    return int(values[-1]) if values else None


def _first_frame(spans: Sequence[Span]) -> Span | None:
    def shows(span: Span) -> bool:
        one = span.step
        return one.name == "playing" or (one.name == "ps" and one.state == "playing") or one.begins_ad

    return next((span for span in spans if shows(span)), None)


def _signs(play: Sequence[Step], spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Signs of playing: the place of each in the play's order, and its time."""
    at = {id(span.step): span for span in spans}
    signs = []
    shift = 0
    for place, one in enumerate(play):
        span = at.get(id(one))
        if span is None:
            if one.attrs.get("sta") == "p":
                signs.append((place, one.at_ms + int(one.attrs.get("ttlb", 0)) + shift))
            continue
        shift = span.at_ms - one.at_ms
        if span.state == "playing" or _shows_playing(one):
            signs.append((place, span.at_ms))
    for before, span in pairwise(spans):
        if before.played_ms:
            signs.append((play.index(span.step), span.at_ms))
    return sorted(signs)


def _shows_playing(one: Step) -> bool:
    if one.source == "mux" and any((one.attrs.get(name) or 0) > 0 for name in _COUNTERS):
        return True
    ended = one.name == "ended" or one.attrs.get("sta") == "e" or one.attrs.get("reason") == "ended"
    return ended or one.begins_ad


def _unknown(
    play: Sequence[Step],
    spans: Sequence[Span],
    signs: Sequence[tuple[int, int]],
    frame: Span | None,
    begun: Span | None,
) -> str | None:
    if not signs:
        return "not_started"
    source = spans[0].step.source
    if source != "mux" and (begun is None or not _is_start(begun.step)):
        return "start_lost"
    if source == "mux" or frame is None:
        return "first_frame_lost"
    advanced = any(before.played_ms for before, span in pairwise(spans) if span is frame)
    if advanced or min(place for place, _ in signs) < play.index(frame.step):
        return "first_frame_lost"
    # By their order: where the clock stepped, the next beacon may have the time of the frame.
    until = next(place for place, span in enumerate(spans) if span is frame)
    between = [span.step.seq for span in spans[: until + 1] if begun.at_ms <= span.at_ms] if begun else []
    return "first_frame_lost" if _lacks(between, spans, frame) else None


def _is_start(one: Step) -> bool:
    if one.source == "cmcd":
        return one.attrs.get("sta") in ("s", "r", "w", None)
    return one.name != "playing"


def _lacks(numbers: list[int], spans: Sequence[Span], frame: Span) -> bool:
    """Whether numbers are missing before the first frame, and what it ended was no start."""
    if frame.before not in ("rebuffering", "paused", "seeking"):
        return False
    return any(after - before > 1 for before, after in pairwise(sorted(numbers)))


def failure_of_cmcd(play: Sequence[Step], spans: Sequence[Span]) -> Step | None:
    """The error of a CMCD play that nothing cleared; None where it has not failed."""
    before = {id(span.step): span.before for span in spans}
    stateless = not any("sta" in one.attrs for one in play)
    error: Step | None = None
    sticky = False
    for one in play:
        sta = one.attrs.get("sta")
        fatal = sta == "f" and not one.is_request
        named = one.name == "ce" and str(one.attrs.get("cen", "")).startswith("playhead-error:")
        if fatal or named or one.name == "e":
            error, sticky = one, (sticky and error is not None) or (named and sta == "p")
            continue
        if error is None:
            continue
        if one.is_request and (one.at_ms <= error.at_ms or "ec" in one.attrs or not 0 < one.attrs.get("rc", 200) < 400):
            continue
        played = sta == "p"
        left = sta in ("a", "k", "q") and before.get(id(one)) == "playing"
        if sticky:
            played, left = one.name == "ps" and sta == "p", False
        if played or left or sta == "e" or (stateless and not one.is_request):
            error, sticky = None, False
    return error
