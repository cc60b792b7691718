"""What the core folds: beacons of concurrent views as the intake writes them to topic `beacons`, by client.

`bench` is the input of the benchmark against other processors: small beacons of Mux's shape. `mux` and `native` come through the
real intake, with the attributes that players send. The same arguments give the same records.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

import orjson

from bench.processor.beacons import View, turns
from loadtest.clients import mux as simulated
from loadtest.story import story_of
from services.collector.intake import native
from services.collector.intake.mux import mux
from services.collector.intake.post import ParsedBody, Post, Rules
from services.collector.intake.sender.client import Agent, Client, Place
from services.collector.sink.records import records_of
from shared import topics

#: Views at a time: more than the core keeps in the processor's own caches.
IN_FLIGHT: Final = 2_000
BEACONS_A_VIEW: Final = 25
DUPLICATE_SHARE: Final = 0.02
START_MS: Final = 1_795_000_000_000
_SEED: Final = 7
_STORY_SECONDS: Final = 60
_BEAT_MS: Final = 10_000
_RULES: Final = Rules(collector_id="c-1")
_CLIENT: Final = Client(
    address="203.0.113.7",
    user_agent="Mozilla/5.0",
    agent=Agent("Chrome", "Linux", "desktop"),
    place=Place("DE", 3320),
)
_Parse = Callable[[Post, Rules], ParsedBody]


class Input(NamedTuple):
    """One record of topic `beacons`: key, value, append time in ms since 1970."""

    key: bytes
    value: bytes
    at_ms: int


def of_bench(views: int) -> list[Input]:
    """The benchmark's own beacons: 25 of each view, 10 s apart."""
    made = [View(number, 1, random.Random(f"{_SEED}/{number}")) for number in range(views)]
    at_ms = count(START_MS)
    return [Input(view.key, value, next(at_ms)) for view, value in turns(made, IN_FLIGHT)]


def of_mux(views: int) -> list[Input]:
    """Simulated viewers of mux-embed, one beacon a POST, through the intake."""
    return _interleaved(_mux_view(number) for number in _mux_stories(views))


def of_native(views: int) -> list[Input]:
    """Views in the native format without numbers, through the intake: put in order by the client's time."""
    return _interleaved(_native_view(number) for number in range(views))


INPUTS: Final[dict[str, Callable[[int], list[Input]]]] = {"bench": of_bench, "mux": of_mux, "native": of_native}


def _mux_stories(views: int) -> Iterator[int]:
    """The numbers of the first stories with enough beacons that mux-embed sends."""
    found = 0
    for number in count():
        if found == views:
            return
        story = story_of(_SEED, number, _STORY_SECONDS)
        if story.player.client == "mux-embed" and story.first("playing") is not None:
            found += 1
            yield number


def _mux_view(number: int) -> list[tuple[bytes, bytes]]:
    story = story_of(_SEED, number, _STORY_SECONDS)
    sent = simulated.beacons(story, START_MS, "example.com")
    bodies = [simulated.envelope([one], START_MS + one.at_ms, 40) for one in sent]
    times = [START_MS + one.at_ms + 60 for one in sent]
    return _received(zip(bodies, times, strict=True), story.player.customer_id, mux.parse_beacons)


def _native_view(number: int) -> list[tuple[bytes, bytes]]:
    rng = random.Random(f"{_SEED}/{number}")
    view_id, playhead_ms, at_ms = f"{number:032x}", 0, START_MS + number
    bodies: list[tuple[bytes, int]] = []
    for seq in range(1, BEACONS_A_VIEW + 1):
        event, attributes = _native_event(seq)
        beacon: dict[str, Any] = {"view_id": view_id, "event": event, "time_ms": at_ms, "playhead_ms": playhead_ms}
        beacon["attrs"] = attributes
        bodies.append((orjson.dumps({"sent_time_ms": at_ms, "beacons": [beacon]}), at_ms + 60))
        elapsed_ms = 700 if seq < 3 else _BEAT_MS + rng.randrange(-200, 200)
        at_ms += elapsed_ms
        playhead_ms += elapsed_ms if seq > 2 else 0
    return _received(bodies, "acme", native.parse_beacons)


def _native_event(seq: int) -> tuple[str, dict[str, Any]]:
    if seq == 1:
        return "viewstart", {
            "video_id": "movie-7",
            "video_title": "Movie 7",
            "viewer_id": "b1946ac9-2ed8-4f3a-8f3c-0b7b7d2f4c11",
            "player_name": "main",
            "player_version": "1.4.2",
            "stream_type": "vod",
            "cdn": "fastly",
            "bitrate_bps": 1_800_000,
            "experiment": "a",
        }
    if seq == BEACONS_A_VIEW:
        return "viewend", {}
    if seq == 2:
        return "playing", {"startup_ms": 700}
    if seq % 8 == 0:
        return "rendition", {"bitrate_bps": 900_000 if seq % 16 else 3_200_000, "cdn": "akamai"}
    return "heartbeat", {"dropped_frames": seq}


def _received(bodies: Iterable[tuple[bytes, int]], customer_id: str, parse: _Parse) -> list[tuple[bytes, bytes]]:
    """The records of these bodies, each received at its time."""
    found = []
    for at, (body, recv_ms) in enumerate(bodies):
        post = Post(
            origin="/",
            body=body,
            key=customer_id,
            content_type="application/json",
            recv_time_ms=recv_ms,
            client=_CLIENT,
            batch_id=str(at),
        )
        records = records_of(parse(post, _RULES), post, topics.PROFILES["laptop"])
        found += [(one.key or b"", one.value) for one in records if one.topic == topics.BEACONS.name]
    return found


def _interleaved(views: Iterable[Sequence[tuple[bytes, bytes]]]) -> list[Input]:
    """One record of each view in flight in turn, some of them twice, 1 ms apart."""
    rng, waiting, at_ms = random.Random(_SEED), iter(views), count(START_MS)
    active: list[Iterator[tuple[bytes, bytes]]] = []
    found: list[Input] = []
    is_over = False
    while active or not is_over:
        while len(active) < IN_FLIGHT and not is_over:
            following = next(waiting, None)
            is_over = following is None
            if following is not None:
                active.append(iter(following))
        going = []
        for view in active:
            record = next(view, None)
            if record is not None:
                going.append(view)
                found += [Input(*record, next(at_ms)) for _ in range(1 + (rng.random() < DUPLICATE_SHARE))]
        active = going
    return found
