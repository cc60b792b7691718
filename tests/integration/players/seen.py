"""What a page saw of its video, integrated as a view's states are; the truth that rows are compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Seen:
    """Times in ms."""

    startup_ms: int = 0
    playing_ms: int = 0
    rebuffer_ms: int = 0
    rebuffer_count: int = 0
    seek_ms: int = 0
    seek_count: int = 0


def seen_until(saw: Mapping[str, Any], until_ms: int) -> Seen:
    """What the page (see story.js) had seen at that time, ms since 1970."""
    seen = Seen()
    state, since_ms = "starting", int(saw["startedMs"])
    events: Sequence[Mapping[str, Any]] = [*saw["events"], {"name": "the end", "ms": until_ms}]
    for event in events:
        now_ms = min(int(event["ms"]), until_ms)
        after = _after(state, str(event["name"]))
        if after == state and event["name"] != "the end":
            continue
        _spend(seen, state, now_ms - since_ms)
        seen.rebuffer_count += after == "rebuffering"
        seen.seek_count += after == "seeking"
        state, since_ms = after, now_ms
        if event["ms"] >= until_ms:
            break
    return seen


def _after(state: str, name: str) -> str:
    if name == "playing":
        return "playing"
    if name == "seeking" and state != "starting":
        return "seeking"
    if name == "waiting" and state == "playing":
        return "rebuffering"
    if name in ("pause", "ended") and state != "starting":
        return "paused"
    return state


def _spend(seen: Seen, state: str, elapsed_ms: int) -> None:
    if state == "starting":
        seen.startup_ms += elapsed_ms
    elif state == "playing":
        seen.playing_ms += elapsed_ms
    elif state == "rebuffering":
        seen.rebuffer_ms += elapsed_ms
    elif state == "seeking":
        seen.seek_ms += elapsed_ms
