"""Stories of views in time, for clients of every kind: what is sent when, by a clock that steps."""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import SKEW_MS, T0, cmcd, mux

Client = Literal["mux", "cmcd", "native", "epas"]
CLIENTS: tuple[Client, ...] = ("mux", "cmcd", "native", "epas")
#: What a CMCD client says of its state with the event.
STATES = {"viewstart": "s", "playing": "p", "rebufferstart": "r", "rebufferend": "p", "pause": "a", "viewend": "q"}
#: Where a clock differs from the true time: from when on (true ms), by how much.
Steps = tuple[tuple[int, int], ...]
#: True ms, event, playhead, attributes.
Event = tuple[int, str, int | None, dict[str, Any]]


def story(client: Client, events: Iterable[Event], steps: Steps = (), *, numbered: bool = True) -> list[Beacon]:
    """The beacons of a view, each sent at once, by a client whose clock has these steps."""
    beacons, state = [], "s"
    for number, (at_ms, event, playhead_ms, attrs) in enumerate(events):
        stepped_ms = sum(by_ms for from_ms, by_ms in steps if at_ms >= from_ms)
        state = STATES.get(event, state)
        more = {"sta": state} if client == "cmcd" else {}
        made = (
            cmcd(number, event, at_ms, **attrs, **more) if client == "cmcd" else mux(number + 1, event, at_ms, **attrs)
        )
        has_number = client in ("mux", "cmcd") or (client == "native" and numbered)
        beacons.append(
            msgspec.structs.replace(
                made,
                source=client,
                view_id="v1",
                seq=made.seq if has_number else None,
                source_event=attrs.get("name", event),
                playhead_ms=playhead_ms,
                client_time_ms=T0 + at_ms + stepped_ms,
                recv_time_ms=T0 + at_ms + SKEW_MS,
                sent_time_ms=T0 + at_ms + stepped_ms if client in ("mux", "native") else None,
                clock_offset_ms=SKEW_MS - stepped_ms,
            )
        )
    return beacons


def beats(from_ms: int, to_ms: int, every_ms: int = 10_000) -> list[Event]:
    return [(at_ms, "heartbeat", None, {}) for at_ms in range(from_ms, to_ms + 1, every_ms)]


RATE = {"video_source_bitrate": 2_000_000, "bitrate_bps": 2_000_000, "bitrate": 2_000, "br": [[2_000, "v"]]}
SLEPT: list[Event] = [
    (0, "viewstart", None, {}),
    (1_000, "playing", None, RATE),
    *beats(11_000, 61_000),
    *beats(2_461_000, 2_511_000),
    (2_521_000, "viewend", None, {}),
]


def times(row: dict[str, Any]) -> tuple[int, int, int, int, int]:
    """Playing as we integrate it, the same with a known bitrate, and what was not counted."""
    playing_ms = row["playing_ms"] if row["source"] != "mux" else row["bitrate_time_ms"]
    return playing_ms, row["bitrate_time_ms"], row["gap_ms"], row["gap_count"], row["clock_step_count"]


STEPPED: list[Event] = [
    (0, "viewstart", None, {}),
    (900, "playing", None, RATE),
    (10_900, "heartbeat", None, {}),
    (20_900, "rebufferstart", None, {}),
    (23_900, "rebufferend", None, {}),
    *beats(33_900, 53_900),
    (63_900, "viewend", None, {}),
]


PAUSED: list[Event] = [
    (0, "viewstart", 0, {}),
    (900, "playing", 0, RATE),
    *((at_ms, "heartbeat", at_ms - 900, {}) for at_ms in range(10_900, 40_901, 10_000)),
    (45_900, "pause", 45_000, {}),
    (1_845_900, "playing", 45_000, {}),
    (1_855_900, "heartbeat", 55_000, {}),
    (1_865_900, "viewend", 65_000, {}),
]


PAUSED_ON: list[Event] = [(at_ms, "heartbeat", at_ms - 1_800_900, {}) for at_ms in range(1_875_900, 1_925_901, 10_000)]


STALLED: list[Event] = [
    (0, "viewstart", None, {}),
    (900, "playing", None, RATE),
    *beats(10_900, 40_900),
    (50_900, "rebufferstart", None, {}),
    (90_900, "rebufferend", None, {}),
    *beats(100_900, 140_900),
    (150_900, "viewend", None, {}),
]
