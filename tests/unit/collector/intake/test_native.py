"""The native intake, and that the published schema and the parser accept the same."""

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from services.collector.intake import native
from services.collector.intake.post import ParsedBody, Rules
from services.collector.intake.sender.client import Client
from services.collector.intake.sender.customers import Customer, WriteKey, listed
from shared.codec import BEACON
from tests.unit.collector.intake.bodies import RECV_TIME_MS, native_beacon, post

RULES = Rules(collector_id="c-1", batch_beacons_max=50, attrs_max=20)
VALIDATOR = Draft202012Validator(json.loads(native.json_schema()))


def parse(document: Any, **fields: Any) -> ParsedBody:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return native.parse_beacons(post(body, **{"key": "acme", "origin": "/v1/beacons"} | fields), RULES)


def test_one_beacon_and_a_batch_become_canonical_beacons() -> None:
    fields = {"seq": 3, "playhead_ms": 1_500, "full_snapshot": True, "attrs": {"video_id": "v", "own": [1]}}
    (one,) = parse(native_beacon(**fields)).accepted
    two = parse({"sent_time_ms": RECV_TIME_MS - 40, "beacons": [native_beacon(), native_beacon(**fields)]}).accepted

    assert (one.source, one.customer_id, one.view_id, one.event) == ("native", "acme", "view-1", "heartbeat")
    assert (one.seq, one.playhead_ms, one.full_snapshot, one.attrs) == (3, 1_500, True, fields["attrs"])
    assert one.clock_offset_ms == RECV_TIME_MS - one.client_time_ms
    assert [(b.seq, b.clock_offset_ms, b.sent_time_ms) for b in two] == [
        (None, 40, RECV_TIME_MS - 40),
        (3, 40, RECV_TIME_MS - 40),
    ]


def test_each_bad_beacon_of_a_batch_is_rejected_with_its_place() -> None:
    deep: Any = 1
    for _ in range(12):
        deep = [deep]
    bad = [
        native_beacon(event="dance"),
        native_beacon(view_id=""),
        native_beacon(view_id="view-1\x002"),
        native_beacon(time_ms=-1),
        native_beacon(seq="1"),
        native_beacon(unheard_of=1),
        native_beacon(attrs={f"a{n}": n for n in range(21)}),
        native_beacon(attrs={"deep": deep}),
        7,
    ]
    parsed = parse({"beacons": [native_beacon(), *bad, native_beacon(seq=2)]})
    assert len(parsed.accepted) == 2
    assert [rejected.place for rejected in parsed.rejected] == list(range(1, 10))
    assert [json.loads(rejected.value) for rejected in parsed.rejected] == bad
    assert {rejected.reason for rejected in parsed.rejected} == {"invalid", "too_large"}
    assert parsed.rejected[0].view_id == "view-1"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "undecodable"),
        (b"\xff", "undecodable"),
        (b'{"beacons": [' + b"[" * 100_000, "undecodable"),
        (b"[]", "invalid"),
        (b'{"beacons": 7}', "invalid"),
        (b'{"beacons": [], "other": 1}', "invalid"),
        (json.dumps({"beacons": [1] * 51}).encode(), "too_large"),
    ],
)
def test_a_body_that_holds_no_beacons_is_rejected_as_a_whole(body: bytes, reason: str) -> None:
    (rejected,) = parse(body).rejected
    assert (rejected.reason, rejected.value, rejected.place, rejected.customer_id) == (reason, body, None, "acme")


def test_a_beacon_too_large_for_a_record_is_answered_in_its_place() -> None:
    large = native_beacon(attrs={f"a{number}": "x" * 60_000 for number in range(5)})
    parsed = native.parse_beacons(
        post(json.dumps({"beacons": [native_beacon(), large, native_beacon()]}).encode(), key="acme"), Rules()
    )
    assert len(parsed.accepted) == 2
    ((rejected),) = parsed.rejected
    assert (rejected.reason, rejected.place) == ("too_large", 1)


def test_a_number_of_more_than_64_bits_is_refused() -> None:
    (rejected,) = parse(native_beacon(attrs={"a": [{"b": 2**64}]})).rejected
    assert rejected.reason == "invalid"
    assert parse(native_beacon(attrs={"a": 2**64 - 1})).rejected == []


@pytest.mark.parametrize(
    ("seq", "kept"), [(b"3.0", 3), (b"30e-1", 3), (b"-0.0", 0), (b"3.5", None), (b"1e400", None), (b"-1.0", None)]
)
def test_a_whole_number_may_be_written_with_a_fraction(seq: bytes, kept: int | None) -> None:
    """To JSON Schema 5.0 is an integer, and some languages write every number so."""
    body = b'{"view_id": "v", "event": "play", "time_ms": 1.795176999e12, "attrs": {"x": 1.0}, "seq": %s}' % seq
    for document in (body, b'{"sent_time_ms": 1795176999040.0, "beacons": [%s]}' % body):
        found = [(beacon.seq, beacon.client_time_ms, beacon.attrs) for beacon in parse(document).accepted]
        assert found == ([] if kept is None else [(kept, 1_795_176_999_000, {"x": 1.0})])


@pytest.mark.parametrize("tail", [b"", b"}x", b', "\xff": 1}', b', "a": "\xff"}', b"," + b"[" * 100_000])
def test_a_bad_beginning_is_no_excuse_for_a_bad_end(tail: bytes) -> None:
    (rejected,) = parse(b'{"time_ms": 1.0, "seq": true' + tail).rejected
    assert rejected.reason in {"invalid", "undecodable"}


def test_half_a_character_costs_neither_the_beacon_nor_its_neighbours() -> None:
    """`title.slice(0, 5)` in JavaScript leaves it, and `JSON.stringify` writes it."""
    attrs = b'{"video_title": "cut \\ud83d", "\\uDC00": "\\ud83d\\ude00"}'
    half = b'{"view_id": "v", "event": "play", "time_ms": 5.0, "attrs": %s}' % attrs
    for document in (half, b'{"beacons": [%s]}' % half):
        (beacon,) = parse(document).accepted
        assert (beacon.client_time_ms, beacon.attrs) == (5, {"video_title": "cut ?", "?": "\N{GRINNING FACE}"})
    parsed = parse(b'{"beacons": [%s, {"event": "\\ud83d"}, {"a": "\\\\ud83d"}]}' % half)
    assert len(parsed.accepted) == 1
    assert [rejected.reason for rejected in parsed.rejected] == ["invalid", "invalid"]


@pytest.mark.parametrize("broken", [b'"\\ud83d', b'{"a": "\\ud83d", "b": NaN}', b'{"a": "\\\\ud83d", "b": NaN}'])
def test_half_a_character_is_no_excuse_for_what_is_no_json(broken: bytes) -> None:
    assert [rejected.reason for rejected in parse(broken).rejected] == ["undecodable"]


@pytest.mark.parametrize(
    ("share", "accepted"), [(0.5, 0), ("0.5", 0), (True, 1), (1, 1), ("1", 1), (None, 1), ("all", 0)]
)
def test_a_client_that_samples_is_rejected_by_that_name(share: object, accepted: int) -> None:
    parsed = parse(native_beacon(attrs={"sample_rate": share}))
    assert len(parsed.accepted) == accepted
    assert all((one.reason, one.detail.startswith("sample_rate is")) == ("sampled", True) for one in parsed.rejected)
    query = [("view_id", "v"), ("event", "play"), ("time_ms", "1"), ("sample_rate", "0.5")]
    queried = native.parse_query(query, post(b"", key="acme"), RULES)
    assert [one.reason for one in queried.rejected] == ["sampled"]


def test_a_beacon_may_be_a_query() -> None:
    query = urlencode({"key": "acme", **native_beacon(seq=4, playhead_ms="1500"), "video_id": "v"})
    parsed = native.parse_query(parse_qsl(query), post(query.encode(), key="acme"), RULES)
    (beacon,) = parsed.accepted
    assert (beacon.view_id, beacon.seq, beacon.playhead_ms, beacon.attrs) == ("view-1", 4, 1_500, {"video_id": "v"})

    query = urlencode(native_beacon(time_ms="noon"))
    (rejected,) = native.parse_query(parse_qsl(query), post(query.encode(), key="acme"), RULES).rejected
    assert (rejected.reason, rejected.value) == ("invalid", query.encode())


def test_viewers_who_want_privacy_are_indistinguishable() -> None:
    client = Client(address="203.0.113.7", user_agent="agent", wants_privacy=True)
    (beacon,) = parse(native_beacon(attrs={"viewer_id": "v", "video_id": "x"}), client=client).accepted
    assert (beacon.attrs, beacon.ip_trunc, beacon.user_agent) == ({"video_id": "x"}, None, None)


#: Also as some languages write them: `5.0`.
_WHOLE = st.integers(-1, 2**54) | st.integers(-1, 2**54).map(float)
_VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.just({})
    | st.just([])
)
_LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
_FIELDS = {
    "view_id": st.text(max_size=70) | _VALUES,
    "event": st.sampled_from(["viewstart", "hb", "viewend"]) | _VALUES,
    "time_ms": _WHOLE | _VALUES,
    "seq": _WHOLE | _VALUES,
    "playhead_ms": _WHOLE | _VALUES,
    "full_snapshot": _VALUES,
    "attrs": st.dictionaries(st.text(max_size=3), _VALUES, max_size=3) | _VALUES,
    "other": _VALUES,
}
_GOOD = st.fixed_dictionaries(
    {"view_id": st.text(_LETTERS, min_size=1, max_size=64), "event": st.just("play"), "time_ms": st.integers(0, 2**53)},
    optional={"seq": st.integers(0, 2**53), "full_snapshot": st.booleans()},
)
_BEACONS = _GOOD | st.builds(lambda good, changes: good | changes, _GOOD, st.fixed_dictionaries({}, optional=_FIELDS))


@given(_BEACONS | st.fixed_dictionaries({}, optional=_FIELDS))
def test_the_schema_and_the_parser_agree_on_every_beacon(beacon: dict[str, Any]) -> None:
    parsed = parse(beacon)
    assert VALIDATOR.is_valid(beacon) == (parsed.rejected == []), (beacon, parsed)
    for canonical in parsed.accepted:
        assert BEACON.decode(BEACON.encode(canonical)) == canonical


@given(
    st.fixed_dictionaries({"beacons": st.lists(_BEACONS, max_size=3)}, optional={"sent_time_ms": _VALUES, "x": _VALUES})
)
def test_the_schema_and_the_parser_agree_on_every_batch(batch: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(batch) == (parse(batch).rejected == [])


@given(st.binary(max_size=200), st.sampled_from(["", "gzip", "deflate", "br", "zstd", "x"]))
def test_no_body_is_too_strange(body: bytes, encoding: str) -> None:
    parsed = parse(body, content_encoding=encoding)
    assert len(parsed.rejected) == 1


@given(st.lists(st.tuples(st.text(max_size=8) | st.sampled_from(sorted(_FIELDS)), st.text(max_size=8)), max_size=6))
def test_no_query_is_too_strange(pairs: list[tuple[str, str]]) -> None:
    parsed = native.parse_query(pairs, post(b"?", key="acme"), RULES)
    assert len(parsed.accepted) + len(parsed.rejected) == 1


def test_a_clock_that_is_set_back_within_a_batch_gives_its_beacons_two_offsets() -> None:
    base_ms = RECV_TIME_MS - 10_000_000
    times_ms = [base_ms + 3_610_000, base_ms + 3_620_000, base_ms + 30_000, base_ms + 40_000]
    beacons = [native_beacon(time_ms=at_ms) for at_ms in times_ms]
    parsed = parse({"sent_time_ms": base_ms + 42_000, "beacons": beacons})
    offsets_ms = [one.clock_offset_ms for one in parsed.accepted]
    after_ms = RECV_TIME_MS - base_ms - 42_000
    # What came before the step was sent when the first one after it was.
    assert offsets_ms == [after_ms + 30_000 - 3_620_000] * 2 + [after_ms] * 2


def test_a_beacon_has_the_key_that_it_came_under_where_that_is_not_the_customer_itself() -> None:
    keys = [WriteKey(key="acme-tv", customer_id="acme")]
    rules = Rules(collector_id="c-1", customers=listed({"acme": Customer()}, keys))
    body = json.dumps(native_beacon()).encode()
    (under,) = native.parse_beacons(post(body, key="acme-tv"), rules).accepted
    (itself,) = native.parse_beacons(post(body, key="acme"), RULES).accepted
    assert [(one.customer_id, one.write_key) for one in (under, itself)] == [("acme", "acme-tv"), ("acme", None)]
    assert b"write_key" not in BEACON.encode(itself)
