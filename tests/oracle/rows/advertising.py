"""The oracle's reading of advertisement events."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from tests.oracle.rows.reading import shows_view
from tests.oracle.rows.walk import Span

_FIELDS: Final = (
    "ad_breaks",
    "ad_preroll_breaks",
    "ad_midroll_breaks",
    "ad_postroll_breaks",
    "ad_attempts",
    "ad_impressions",
    "ad_errors",
    "ad_playing_ms",
    "ad_preroll_playing_ms",
)


def ads(spans: Sequence[Span]) -> dict[str, Any]:
    """Breaks, attempts, impressions and errors of a play, and how long its ads played."""
    row = dict.fromkeys(_FIELDS, 0)
    playing = has_played = has_ended = paused = in_break = attempted = False
    for before, span in pairwise([None, *spans]):
        assert span is not None
        one = span.step
        # Where the beacon of the first frame was lost, others show that the content has played.
        has_played = has_played or is_first_frame(span) or (before is not None and before.played_ms > 0)
        shown = span.state == "playing" and one.state != ""
        has_played = has_played or (shown and not one.ad and not in_break)
        in_break = one.ad != "adbreakend" and (in_break or bool(one.ad))
        has_ended = has_ended or one.name == "ended" or one.attrs.get("sta") == "e"
        match one.ad:
            case "adbreakstart":
                playing = paused = False
                row["ad_breaks"] += 1
                place = "postroll" if has_ended else "midroll" if has_played else "preroll"
                row[f"ad_{place}_breaks"] += 1
            case "adplay":
                row["ad_attempts"] += not paused
                attempted, playing = not paused or attempted, False
            case "adplaying":
                is_new = not (playing or paused)
                row["ad_attempts"] += is_new and not attempted
                row["ad_impressions"] += is_new
                attempted, playing, paused = attempted and not is_new, True, False
            case "adpause":
                playing, paused = False, True
            case "aderror" | "adended" | "adbreakend":
                row["ad_errors"] += one.ad == "aderror"
                attempted = attempted and one.ad != "aderror"
                playing = paused = False
        if playing:
            row["ad_playing_ms"] += span.ms
            row["ad_preroll_playing_ms"] += 0 if has_played else span.ms
    return row


def content_startup_ms(row: dict[str, Any], spans: Sequence[Span]) -> int | None:
    """From the start to the content's first frame, without the time in ad breaks; without ads the start-up time."""
    if row["startup_ms"] is None or not any(span.step.ad for span in spans):
        return row["startup_ms"]
    begun = next((span for span in spans if shows_view(span.step)), None)
    frame = next((span for span in spans if is_first_frame(span)), None)
    if begun is None or frame is None:
        return None
    in_break, off_ms = False, 0
    for span in spans:
        if span is frame:
            break
        in_break = span.step.ad != "adbreakend" and (in_break or bool(span.step.ad))
        if span.played_ms or (span.state == "playing" and span.step.state and not (in_break or span.step.ad)):
            # The beacon of the content's first frame was lost.
            return None
        off_ms += span.gap_ms + span.missing_ms + (span.ms if in_break else 0)
    return max(0, frame.at_ms - begun.at_ms - off_ms)


def is_first_frame(span: Span) -> bool:
    """Whether a beacon says that content plays."""
    return span.step.name == "playing" or (span.step.name == "ps" and span.step.state == "playing")
