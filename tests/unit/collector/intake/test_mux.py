"""The mux intake: real bodies, what each field becomes, and what is rejected instead."""

import gzip
import json
import tracemalloc
import zlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.collector.intake.mux import mux
from services.collector.intake.post import ParsedBody, Rules
from services.collector.intake.sender.client import Client
from services.collector.intake.sender.customers import Customer, Customers, WriteKey, listed
from shared.codec import BEACON
from shared.schemas.beacon import Beacon
from tests.unit.collector.intake.bodies import RECV_TIME_MS, mux_body, mux_event, mux_posts, post

RULES = Rules(collector_id="c-1")


def parse(body: bytes, **fields: Any) -> ParsedBody:
    return mux.parse_beacons(post(body, **fields), RULES)


def accepted(body: bytes, **fields: Any) -> list[Beacon]:
    parsed = parse(body, **fields)
    assert parsed.rejected == []
    return parsed.accepted


def rejected_reasons(parsed: ParsedBody) -> list[str]:
    return [rejected.reason for rejected in parsed.rejected]


def test_a_real_view_of_mux_embed_becomes_beacons_in_its_order() -> None:
    beacons = [beacon for real in mux_posts() for beacon in accepted(json.dumps(real["body"]).encode())]

    assert [beacon.seq for beacon in beacons] == list(range(1, 19))
    assert {(beacon.customer_id, beacon.source) for beacon in beacons} == {("cust123", "mux")}
    assert len({beacon.view_id for beacon in beacons}) == 1
    events = [(beacon.source_event, beacon.event) for beacon in beacons]
    assert events[:7] == [
        ("networkchange", "custom"),
        ("playerready", "custom"),
        ("playbackmodechange", "custom"),
        ("viewstart", "viewstart"),
        ("renditionchange", "rendition"),
        ("play", "play"),
        ("playing", "playing"),
    ]
    assert ("rebufferstart", "rebufferstart") in events
    assert ("hb", "heartbeat") in events
    assert [beacon.source_event for beacon in beacons if beacon.full_snapshot] == ["viewstart", "viewend"]


def test_a_real_beacon_keeps_every_field_under_its_full_name() -> None:
    real = mux_posts()[1]["body"]
    playing = accepted(json.dumps(real).encode(), client=Client(address="10.0.0.7", user_agent="node"))[2]

    assert playing == Beacon(
        schema_version=1,
        source="mux",
        customer_id="cust123",
        view_id="23deb43b-dc4a-4c0f-a65b-46d1f8db7e7e",
        event="playing",
        source_event="playing",
        recv_time_ms=RECV_TIME_MS,
        client_time_ms=1795176497093,
        seq=7,
        player_seq=7,
        sent_time_ms=1795176506792,
        rtt_ms=48,
        clock_offset_ms=RECV_TIME_MS - 1795176506792,
        playhead_ms=200,
        attrs={
            "mux_api_version": "2.1",
            "player_instance_id": "9dcc6357-ab12-4a8c-9896-0ec5f8db7e7c",
            "beacon_domain": "localhost:43781",
            "view_max_playhead_position": 200,
            "video_id": "vid-1",
            "view_playing_time_ms_cumulative": 0,
            "view_watch_time": 323,
            "view_time_to_first_frame": 323,
            "video_playback_range": '["0:200"]',
            "session_expires": 1795177997094,
        },
        ip_trunc="10.0.0.0/24",
        user_agent="node",
        collector_id="c-1",
        batch_id="b-1",
    )


def test_one_post_may_hold_two_views_of_two_customers() -> None:
    body = mux_body(mux_event(e="viewend"), mux_event(ake="other", xid="view-2", e="viewstart", xsqno=1))
    assert [(b.customer_id, b.view_id, b.seq) for b in accepted(body)] == [
        ("acme", "view-1", 7),
        ("other", "view-2", 1),
    ]


@pytest.mark.parametrize(
    ("fields", "event"),
    [
        ({"e": "seeking"}, "seekstart"),
        ({"e": "seeked"}, "seekend"),
        ({"e": "requestfailed"}, "request"),
        ({"e": "error"}, "error"),
        ({"e": "error", "persy": "fatal"}, "error"),
        ({"e": "error", "persy": "warning"}, "warning"),
        ({"e": "adbreakstart"}, "ad"),
        ({"e": "aderror"}, "ad"),
        ({"e": "devicesleep"}, "background"),
        ({"e": "texttrackchange"}, "custom"),
    ],
)
def test_an_event_gets_its_canonical_name(fields: dict[str, Any], event: str) -> None:
    beacon = accepted(mux_body(mux_event(**fields)))[0]
    assert (beacon.event, beacon.source_event) == (event, fields["e"])


def test_the_body_is_json_under_any_content_type_and_encoding() -> None:
    body = mux_body(mux_event())
    raw = zlib.compressobj(wbits=-15)
    packed = [
        (body, {"content_type": "text/plain"}),
        (body, {"content_type": "image/gif", "content_encoding": "gzip"}),
        (gzip.compress(body), {"content_encoding": "gzip"}),
        (gzip.compress(body), {}),
        (zlib.compress(body), {"content_encoding": "deflate"}),
        (raw.compress(body) + raw.flush(), {"content_encoding": "Deflate"}),
    ]
    for data, headers in packed:
        assert len(accepted(data, **headers)) == 1


def test_a_clock_that_is_set_back_within_a_body_without_a_send_time_gives_its_events_two_offsets() -> None:
    base_ms = 1_795_170_000_000
    times_ms = enumerate((3_600_000, 10_000, 15_000))
    events = [mux_event(xsqno=str(3 + n), uti=str(base_ms + at_ms)) for n, at_ms in times_ms]
    offsets = [one.clock_offset_ms for one in accepted(json.dumps({"events": events}).encode())]
    assert offsets == [RECV_TIME_MS - base_ms - at_ms for at_ms in (3_605_000, 15_000, 15_000)]


def test_a_roku_player_sends_text_for_numbers_and_no_metadata() -> None:
    event = mux_event(ake=..., property_ke="acme", xsqno="3", uti="1795176999000", pphti="1500.4", vsoisli="true")
    event |= {"xwati": "2500", "msara": "1", "vtt": "1984", "pispa": "maybe", "xredu": "null", "xreco": ""}
    other = mux_event(xsqno="4", uti="1795176999500")
    beacon = accepted(json.dumps({"events": [event, other]}).encode())[0]

    assert (beacon.customer_id, beacon.seq, beacon.client_time_ms) == ("acme", 3, 1795176999000)
    assert beacon.playhead_ms == 1500
    assert beacon.sent_time_ms is None
    assert beacon.clock_offset_ms == RECV_TIME_MS - 1795176999500
    assert beacon.attrs == {
        "video_source_is_live": True,
        "view_watch_time": 2500,
        "mux_sample_rate": 1,
        "video_title": "1984",
        "player_is_paused": "maybe",
        "view_rebuffer_duration": "null",
        "view_rebuffer_count": "",
    }


def test_nested_values_stay_as_they_are() -> None:
    headers = {"x-cdn": "a", "age": {"seconds": [1, 2]}}
    assert accepted(mux_body(mux_event(qrphe=headers)))[0].attrs == {"request_response_headers": headers}


def test_half_a_character_does_not_cost_the_batch() -> None:
    body = mux_body(mux_event(vtt="cut"), mux_event(xsqno=8)).replace(b"cut", b"cut \\ud83d")
    assert [beacon.attrs.get("video_title") for beacon in accepted(body)] == ["cut ?", None]


@pytest.mark.parametrize("share", [0.5, "0.1", 0, 2, "half", [1]])
def test_a_player_that_samples_is_rejected_by_that_name(share: object) -> None:
    parsed = parse(mux_body(mux_event(msara=share), mux_event(xsqno=8, msara=1), mux_event(xsqno=9, msara="1.0")))
    assert [beacon.seq for beacon in parsed.accepted] == [8, 9]
    assert [one.reason for one in parsed.rejected] == ["sampled"]
    assert "mux_sample_rate" in parsed.rejected[0].detail


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"ake": ...}, "invalid"),
        ({"ake": "no spaces"}, "invalid"),
        ({"ake": 5}, "invalid"),
        ({"ake": "x" * 65}, "invalid"),
        ({"xid": ...}, "invalid"),
        ({"xid": ""}, "invalid"),
        ({"xid": "v" * 65}, "invalid"),
        ({"xid": "v\x002"}, "invalid"),
        ({"e": ...}, "invalid"),
        ({"e": ["hb"]}, "invalid"),
        ({"e": "e" * 65}, "invalid"),
        ({"uti": ...}, "invalid"),
        ({"uti": "yesterday"}, "invalid"),
        ({"uti": -1}, "invalid"),
        ({"xsqno": -1}, "invalid"),
        ({"xsqno": 1.5e300}, "invalid"),
        ({"xsqno": True}, "invalid"),
        ({"qrphe": [[[[[[[[[1]]]]]]]]]}, "invalid"),
        ({"vtt": "t" * 70_000}, "too_large"),
        ({"qrphe": {"a": ["t" * 70_000]}}, "too_large"),
        ({"x" * 200: 1}, "too_large"),
        ({f"c{n}": n for n in range(1_001)}, "too_large"),
    ],
)
def test_a_bad_event_is_rejected_and_its_neighbours_are_not(changed: dict[str, Any], reason: str) -> None:
    bad = mux_event(**changed)
    parsed = parse(mux_body(mux_event(xsqno=1), bad, mux_event(xsqno=3)))

    assert [beacon.seq for beacon in parsed.accepted] == [1, 3]
    assert rejected_reasons(parsed) == [reason]
    assert orjson.loads(parsed.rejected[0].value) == bad
    assert not parsed.rejected[0].encoded
    assert parsed.rejected[0].detail


def test_an_event_without_ids_is_rejected_even_as_the_first() -> None:
    nobodys = mux_event(ake=..., xid=...)
    assert rejected_reasons(parse(mux_body(nobodys, nobodys, {}))) == ["invalid"] * 3
    assert rejected_reasons(parse(mux_body("not an object", None, 7))) == ["invalid"] * 3


def test_a_playhead_that_is_no_number_is_kept_as_it_was_sent() -> None:
    beacon = accepted(mux_body(mux_event(pphti="unknown", psqno=[1])))[0]
    assert (beacon.playhead_ms, beacon.player_seq) == (None, None)
    assert beacon.attrs == {"player_playhead_time": "unknown", "player_sequence_number": [1]}


def test_an_unknown_customer_and_a_malformed_one_have_different_reasons() -> None:
    rules = Rules(customers=Customers({"acme": Customer()}))
    parsed = mux.parse_beacons(post(mux_body(mux_event(), mux_event(ake="stranger"), mux_event(ake="a b"))), rules)
    assert [beacon.customer_id for beacon in parsed.accepted] == ["acme"]
    assert rejected_reasons(parsed) == ["unknown_customer", "invalid"]
    assert [rejected.customer_id for rejected in parsed.rejected] == ["stranger", None]


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        (b"", {}, "undecodable"),
        (b"hello", {}, "undecodable"),
        (b'{"events": [NaN]}', {}, "undecodable"),
        (b"\xff\xfe{}", {}, "undecodable"),
        (b'"\\ud83d" and more', {}, "undecodable"),
        (b"[" * 100_000, {}, "undecodable"),
        (b'{"unheard_of": ' + b"[" * 5_000 + b"]" * 5_000 + b', "events": []}', {}, "undecodable"),
        (b"[]", {}, "invalid"),
        (b'{"events": {}}', {}, "invalid"),
        (b'{"event": []}', {}, "invalid"),
        (gzip.compress(b"{}")[:-4], {}, "undecodable"),
        (gzip.compress(b"{}") + b"more", {}, "undecodable"),
        (b"\x1f\x8bnot gzip", {}, "undecodable"),
        (b"x", {"content_encoding": "deflate"}, "undecodable"),
        (b"{}", {"content_encoding": "br"}, "undecodable"),
        (gzip.compress(b" " * 3_000_000), {}, "too_large"),
        (b"{", {"whole": False}, "too_large"),
        (json.dumps({"events": [1] * 3_601}).encode(), {}, "too_large"),
    ],
)
def test_a_body_that_holds_no_events_is_rejected_as_it_came(body: bytes, headers: dict[str, Any], reason: str) -> None:
    parsed = parse(body, **headers)
    assert parsed.accepted == []
    assert [(rejected.reason, rejected.value, rejected.encoded) for rejected in parsed.rejected] == [
        (reason, body, True)
    ]


@pytest.mark.thorough
def test_a_body_that_unpacks_to_far_too_much_is_never_unpacked_whole() -> None:
    bomb = post(gzip.compress(b" " * 60_000_000))
    tracemalloc.start()
    try:
        assert rejected_reasons(mux.parse_beacons(bomb, RULES)) == ["too_large"]
        assert tracemalloc.get_traced_memory()[1] < 3 * RULES.body_bytes_max
    finally:
        tracemalloc.stop()


def test_an_empty_batch_is_nothing_and_no_fault() -> None:
    assert parse(mux_body()) == ParsedBody([], [])


@pytest.mark.parametrize(
    "bad",
    [
        b'{ "ake":"acme", "xid":"v", "xid":"v-2" ,"e":"hb", "xsqno": -1.0E0}',
        b'{"ake": "a b", "vtt": "\\u00e9"}',
        b'{"c1": ' + b"[" * 500 + b"]" * 500 + b"}",
        b"nu" + b"ll",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_of_a_bad_event_the_very_bytes_are_kept(bad: bytes, packed: bool) -> None:
    body = mux_body(mux_event(xsqno=1), "here", mux_event(xsqno=3)).replace(b'"here"', bad)
    parsed = parse(gzip.compress(body) if packed else body)
    assert [beacon.seq for beacon in parsed.accepted] == [1, 3]
    assert [(rejected.value, rejected.encoded) for rejected in parsed.rejected] == [(bad, False)]


def test_of_a_bad_event_with_half_a_character_all_else_is_kept() -> None:
    body = mux_body("here", mux_event(xsqno=3)).replace(b'"here"', b'{"ake": "a b", "vtt": "\\ud83d"}')
    assert [(each.value, each.encoded) for each in parse(body).rejected] == [(b'{"ake": "a b", "vtt": "?"}', False)]


def test_where_an_event_cannot_be_separated_from_its_neighbours_the_body_is_kept() -> None:
    body = b'{"events": {}, "events": [7]}'
    assert [(rejected.value, rejected.encoded) for rejected in parse(body).rejected] == [(body, True)]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_FIELDS = st.sampled_from(["ake", "xid", "e", "xsqno", "psqno", "uti", "pphti", "persy", "property_ke", "xwati"])


@pytest.mark.thorough
@given(st.lists(_JSON | st.dictionaries(_FIELDS, _JSON | st.just("a")), max_size=4), _JSON)
def test_every_event_becomes_a_beacon_or_is_rejected(events: list[Any], metadata: Any) -> None:
    parsed = parse(json.dumps({"metadata": metadata, "events": events}).encode())
    assert len(parsed.accepted) + len(parsed.rejected) == len(events)
    for beacon in parsed.accepted:
        assert BEACON.decode(BEACON.encode(beacon)) == beacon


@given(st.binary(max_size=200), st.sampled_from(["", "gzip", "deflate"]))
def test_no_body_is_too_strange(body: bytes, encoding: str) -> None:
    parsed = parse(body, content_encoding=encoding)
    assert len(parsed.rejected) == 1


@pytest.mark.parametrize(
    ("number", "kept"), [("9" * 400, None), (str(2**63), 2**63), (str(2**70), float(2**70)), ("1e999", None)]
)
def test_a_number_that_readers_cannot_hold_reaches_nobody(number: str, kept: float | None) -> None:
    parsed = mux.parse_beacons(
        post(mux_body(mux_event(vtt=0)).replace(b'"vtt": 0', b'"vtt": ' + number.encode())), Rules()
    )
    if kept is None:
        assert [rejected.reason for rejected in parsed.rejected] == ["undecodable"]
    else:
        assert [beacon.attrs["video_title"] for beacon in parsed.accepted] == [kept]


def test_events_are_counted_by_key_where_keys_have_limits() -> None:
    keys = [
        WriteKey(key=name, customer_id="acme", beacons_per_second=limit) for name, limit in (("web", 1.0), ("tv", None))
    ]
    rules = Rules(collector_id="c", customers=listed({"acme": Customer()}, keys))
    names = ("web", "web", "tv", "stranger", "web", "tv", "tv")
    parsed = mux.parse_beacons(post(mux_body(*(mux_event(ake=name) for name in names))), rules)
    assert dict(parsed.by_key) == {"web": 3, "tv": 3}
    assert len(parsed.accepted) == 6
    assert [one.write_key for one in parsed.accepted] == [name for name in names if name != "stranger"]
    without = Rules(collector_id="c", customers=listed({"acme": Customer()}, keys[1:]))
    assert mux.parse_beacons(post(mux_body(mux_event(ake="tv"))), without).by_key == ()


def test_names_of_an_event_with_too_many_fields_are_not_even_spelled_out() -> None:
    known = len(mux._full_names)
    invented = {f"zq{number}": 1 for number in range(2_000)}
    parsed = parse(mux_body(mux_event(**invented)))
    assert [one.reason for one in parsed.rejected] == ["too_large"]
    assert parsed.rejected[0].detail.endswith(" fields; 1000 are the most")
    assert len(mux._full_names) == known
