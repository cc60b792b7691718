"""The EPAS intake: names, units, sessions, and that nothing but the parser's own error leaves it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.collector.intake import epas
from services.collector.intake.post import Rules
from services.collector.intake.sender.client import Client
from shared.codec import BEACON
from shared.schemas.beacon import Beacon
from tests.unit.collector.intake.bodies import RECV_TIME_MS, epas_event, post

RULES = Rules(collector_id="c-1")


def parse(event: Any, **fields: Any) -> epas.ParsedEvent:
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    return epas.parse_event(post(body, **{"key": "acme", "origin": "/epas/acme"} | fields), RULES, "new-session")


def accepted(event: Any, **fields: Any) -> Beacon:
    (beacon,) = parse(event, **fields).parsed.accepted
    return beacon


def test_an_event_becomes_a_beacon_of_its_session() -> None:
    event = epas_event(event="bitrate_changed", payload={"bitrate": 2400, "width": 1280})
    beacon = accepted(event, in_seconds=True)
    assert (beacon.source, beacon.customer_id, beacon.view_id) == ("epas", "acme", "session-1")
    assert (beacon.event, beacon.source_event, beacon.seq) == ("rendition", "bitrate_changed", None)
    assert beacon.client_time_ms == 1_795_176_999_000
    assert beacon.clock_offset_ms == RECV_TIME_MS - 1_795_176_999_000
    assert beacon.attrs == {"bitrate": 2400, "width": 1280, "duration": 600_000}
    assert beacon.playhead_ms == 12_500


def test_the_web_sdk_counts_in_seconds_and_the_specification_in_ms() -> None:
    assert accepted(epas_event(playhead=12_500)).playhead_ms == 12_500
    assert accepted(epas_event(playhead=12.5), in_seconds=True).playhead_ms == 12_500


@pytest.mark.parametrize("unknown", [-1, None, "x", True, 1e300, [1]])
def test_an_unknown_playhead_is_none(unknown: object) -> None:
    for in_seconds in (True, False):
        beacon = accepted(epas_event(playhead=unknown, duration=unknown), in_seconds=in_seconds)
        assert (beacon.playhead_ms, beacon.attrs) == (None, {})


def test_half_a_character_does_not_cost_the_event() -> None:
    event = json.dumps(epas_event(event="metadata", payload={"contentTitle": "cut"})).replace("cut", "cut \\ud83d")
    assert accepted(event.encode()).attrs["contentTitle"] == "cut ?"
    (rejected,) = parse(event.replace("600", "NaN").encode()).parsed.rejected
    assert rejected.reason == "undecodable"


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("init", "custom"),
        ("metadata", "custom"),
        ("loading", "viewstart"),
        ("loaded", "custom"),
        ("paused", "pause"),
        ("buffering", "rebufferstart"),
        ("stopped", "viewend"),
        ("warning", "warning"),
    ],
)
def test_an_event_gets_its_canonical_name(name: str, event: str) -> None:
    assert accepted(epas_event(event=name)).event == event


def test_a_session_that_begins_without_an_id_is_given_one() -> None:
    parsed = parse(epas_event(event="init", sessionId=...))
    assert (parsed.session_id, parsed.begins, parsed.parsed.accepted[0].view_id) == ("new-session", True, "new-session")
    parsed = parse(epas_event(event="init"))
    assert (parsed.session_id, parsed.begins) == ("session-1", True)
    assert parse(epas_event()).begins is False


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (b"", "undecodable"),
        (b"\xff{}", "undecodable"),
        (b"[" * 5_000, "undecodable"),
        (b"[]", "invalid"),
        (epas_event(sessionId=...), "invalid"),
        (epas_event(sessionId=7), "invalid"),
        (epas_event(sessionId="s\x002"), "invalid"),
        (epas_event(timestamp="noon"), "invalid"),
        (epas_event(event=...), "invalid"),
        (epas_event(payload={"x": "y" * 70_000}), "too_large"),
    ],
)
def test_what_is_no_event_is_rejected(event: Any, reason: str) -> None:
    (rejected,) = parse(event).parsed.rejected
    assert (rejected.reason, rejected.customer_id) == (reason, "acme")


def test_viewers_who_want_privacy_are_indistinguishable() -> None:
    event = epas_event(event="metadata", payload={"userId": "u", "deviceId": "d", "contentTitle": "t"}, duration=-1)
    assert accepted(event, client=Client(wants_privacy=True)).attrs == {"contentTitle": "t"}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["event", "sessionId", "timestamp", "playhead", "duration", "payload", "x"]),
        _JSON | st.sampled_from(["init", "s", 7]),
    )
    | _JSON,
    st.booleans(),
)
def test_every_event_becomes_a_beacon_or_is_rejected(event: Any, in_seconds: bool) -> None:
    parsed = parse(event, in_seconds=in_seconds).parsed
    assert len(parsed.accepted) + len(parsed.rejected) == 1
    for beacon in parsed.accepted:
        assert BEACON.decode(BEACON.encode(beacon)) == beacon


@given(st.binary(max_size=200), st.sampled_from(["", "gzip", "deflate", "br", "zstd"]))
def test_no_body_is_too_strange(body: bytes, encoding: str) -> None:
    parse(body, content_encoding=encoding)
