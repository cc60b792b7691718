"""Beacons of real players: bodies as captured, parsed as the collector does."""

import json
from functools import cache
from pathlib import Path

from services.collector.intake.cmcd import cmcd
from services.collector.intake.mux import mux
from services.collector.intake.post import ParsedBody, Rules
from shared.schemas.beacon import Beacon
from tests.unit.collector.intake.bodies import FIXTURES, cmcd_bodies, post

_RULES = Rules(collector_id="c-1")
_CMCD_RECV_MS = 1_795_177_160_000


@cache
def mux_watched() -> tuple[Beacon, ...]:
    """mux-embed 5.19.0, vod: a rendition, one rebuffering, a heartbeat, a clean end."""
    return tuple(_mux("mux-embed-ok.json"))


@cache
def mux_with_ads() -> tuple[Beacon, ...]:
    """mux-embed 5.19.0 in Chromium, live, reported by its `emit` of: a pre-roll of two ads of which one fails, five requests of
    which one fails and one is cancelled, a switch up, a stall of 2.5 s, another CDN, a seek, a mid-roll with a pause in it,
    a post-roll, a clean end.
    """
    return tuple(_mux("mux-embed-ads.json"))


@cache
def cmcd_stalled() -> tuple[Beacon, ...]:
    """The players' common CMCD reporter: start, playing, a request, a warning, a stall; three records come twice."""
    parsed = [
        cmcd.parse_records(post(body, key="acme", origin="/cmcd/acme", recv_time_ms=_CMCD_RECV_MS + number), _RULES)
        for number, body in enumerate(cmcd_bodies())
    ]
    return tuple(beacon for one in parsed for beacon in _accepted(one))


def _mux(name: str) -> list[Beacon]:
    posts = json.loads(Path(FIXTURES / name).read_text())
    beacons: list[Beacon] = []
    for sent in posts:
        sent_ms = sent["body"]["metadata"]["transmission_timestamp"]
        body = json.dumps(sent["body"]).encode()
        beacons += _accepted(
            mux.parse_beacons(post(body, recv_time_ms=sent.get("recv_time_ms", sent_ms + 700)), _RULES)
        )
    return beacons


def _accepted(parsed: ParsedBody) -> list[Beacon]:
    assert parsed.rejected == []
    return parsed.accepted
