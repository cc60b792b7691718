"""The CMCD intake: real bodies, what each field becomes, and what is rejected instead."""

import gzip
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.collector.intake.cmcd import cmcd
from services.collector.intake.post import ParsedBody, Rules
from services.collector.intake.sender.client import Client
from services.collector.intake.sender.customers import Customer, Customers
from shared.codec import BEACON
from shared.schemas.beacon import Beacon
from tests.unit.collector.intake.bodies import CMCD_RECORD, RECV_TIME_MS, cmcd_bodies, post

RULES = Rules(collector_id="c-1")


def parse(body: bytes, **fields: Any) -> ParsedBody:
    return cmcd.parse_records(post(body, **{"key": "acme", "origin": "/cmcd/acme"} | fields), RULES)


def record(**changed: str | None) -> str:
    """A valid record with members changed; None leaves one out, an empty text makes it a bare key."""
    members: dict[str, str | None] = {"e": "t", "sid": '"s-1"', "sn": "4", "ts": "1795177158784", "v": "2"}
    return ",".join(
        f"{key}={value}" if value else key for key, value in (members | changed).items() if value is not None
    )


def test_real_bodies_become_beacons() -> None:
    parsed = [parse(body) for body in cmcd_bodies()]

    assert [len(each.accepted) for each in parsed] == [3, 3, 5]
    assert all(each.rejected == [] for each in parsed)
    # The second body failed at its first sending: its records come again in the third, with the same numbers.
    beacons = [beacon for each in parsed for beacon in each.accepted]
    assert [(beacon.seq, beacon.source_event, beacon.event) for beacon in beacons] == [
        (0, "ps:s", "viewstart"),
        (1, "t:s", "heartbeat"),
        (2, "ps:p", "playing"),
        (3, "bc:p", "rendition"),
        (4, "rr:p", "request"),
        (5, "e:p", "error"),
        (3, "bc:p", "rendition"),
        (4, "rr:p", "request"),
        (5, "e:p", "error"),
        (6, "ce:p", "custom"),
        (7, "ps:r", "rebufferstart"),
    ]


def test_a_real_record_keeps_every_key_as_it_is() -> None:
    response = parse(cmcd_bodies()[1], client=Client(user_agent="hls")).accepted[1]
    assert response == Beacon(
        schema_version=1,
        source="cmcd",
        customer_id="acme",
        view_id="s1-uuid",
        event="request",
        source_event="rr:p",
        recv_time_ms=RECV_TIME_MS,
        client_time_ms=1795177158797,
        seq=4,
        clock_offset_ms=RECV_TIME_MS - 1795177158797,
        playhead_ms=1234,
        attrs={
            "bl": [[1200, "v"]],
            "br": [[5000, "v"], [128, "a"]],
            "cid": 'movie "9"',
            "d": 4000,
            "e": "rr",
            "mtp": [[25500, None]],
            "nor": [["seg2.m4s", None]],
            "ot": "v",
            "rc": 200,
            "sf": "h",
            "st": "v",
            "sta": "p",
            "ttfb": 50,
            "ttlb": 300,
            "url": "https://cdn.example/seg1.m4s?x=1",
            "v": 2,
        },
        user_agent="hls",
        collector_id="c-1",
        batch_id="b-1",
    )


@pytest.mark.parametrize(
    ("e", "sta", "event"),
    [
        ("ps", "s", "viewstart"),
        ("ps", "p", "playing"),
        ("ps", "a", "pause"),
        ("ps", "r", "rebufferstart"),
        ("ps", "k", "seekstart"),
        ("ps", "f", "error"),
        ("ps", "e", "ended"),
        ("ps", "q", "viewend"),
        ("ps", "d", "custom"),
        ("ps", "w", "custom"),
        ("ps", None, "custom"),
        ("bc", None, "rendition"),
        ("e", "p", "error"),
        ("t", "e", "heartbeat"),
        ("abs", None, "ad"),
        ("abe", None, "ad"),
        ("as", None, "ad"),
        ("ae", None, "ad"),
        ("sk", None, "ad"),
        ("b", None, "background"),
        ("ce", None, "custom"),
        ("new", None, "custom"),
    ],
)
def test_an_event_gets_its_canonical_name(e: str, sta: str | None, event: str) -> None:
    beacon = parse(record(e=e, sta=sta).encode()).accepted[0]
    assert (beacon.event, beacon.source_event) == (event, e if sta is None else f"{e}:{sta}")


@pytest.mark.parametrize(
    "body",
    [
        CMCD_RECORD,
        CMCD_RECORD + "\n",
        "\n\n  " + CMCD_RECORD + " \t\r\n\n",
    ],
)
def test_blank_lines_and_line_ends_mean_nothing(body: str) -> None:
    parsed = parse(body.encode())
    assert (len(parsed.accepted), parsed.rejected) == (1, [])


def test_a_packed_body_is_unpacked() -> None:
    assert len(parse(gzip.compress(CMCD_RECORD.encode()), content_encoding="gzip").accepted) == 1


def test_the_clock_offset_goes_by_the_latest_time_of_the_request() -> None:
    body = "\n".join([record(ts="1795176999000"), record(ts="1795176999900", sn="5")]).encode()
    assert {beacon.clock_offset_ms for beacon in parse(body).accepted} == {100}


def offsets(*records: tuple[int, int, str]) -> list[int | None]:
    """The clock offsets of records with these numbers, seconds and events, in one body."""
    base_ms = 1_795_176_000_000
    lines = [record(sn=str(sn), ts=str(base_ms + at_s * 1_000), e=event) for sn, at_s, event in records]
    found = [one.clock_offset_ms for one in parse("\n".join(lines).encode()).accepted]
    return [None if one is None else (one - (RECV_TIME_MS - base_ms)) // 1_000 for one in found]


def test_a_clock_that_is_set_back_within_a_body_gives_its_beacons_two_offsets() -> None:
    # Set back by an hour before number 6, which is sent about when number 5 is.
    assert offsets((4, 3_610, "t"), (5, 3_620, "t"), (6, 30, "t"), (7, 40, "t")) == [-3_630, -3_630, -40, -40]
    assert offsets((45, 3_610, "t"), (0, 20, "t")) == [-3_610, -20]


def test_a_request_that_began_before_the_clock_was_set_back_shows_it_to_what_comes_after() -> None:
    assert offsets((4, 3_610, "rr"), (5, 30, "t"), (6, 40, "t")) == [-3_620, -40, -40]
    assert offsets((3, 3_620, "t"), (4, 3_610, "rr"), (5, 30, "t")) == [-3_620, -3_620, -30]


@pytest.mark.parametrize(
    "records",
    [
        # The time of a response report is when its request began.
        [(4, 100, "t"), (5, 40, "rr"), (6, 110, "t")],
        # From the newest to the oldest; a little out of order; a clock that was set forward.
        [(6, 110, "t"), (5, 75, "t"), (4, 40, "t")],
        [(4, 110, "t"), (5, 81, "t")],
        [(4, 40, "t"), (5, 110, "t")],
    ],
)
def test_bodies_whose_clock_was_not_set_back_have_one_offset(records: list[tuple[int, int, str]]) -> None:
    assert set(offsets(*records)) == {-max(at_s for _, at_s, event in records)}


def test_a_request_that_began_before_the_clock_was_set_back_says_nothing_of_it() -> None:
    assert offsets((4, 3_600, "t"), (5, 10, "t"), (6, 3_590, "rr"), (7, 20, "t")) == [-3_610, -20, -20, -20]


@pytest.mark.parametrize("nonsense", ["99999999999999999", "-5", "(1795177999999)"])
def test_a_time_that_is_none_says_nothing_of_the_clock(nonsense: str) -> None:
    body = "\n".join([record(ts="1795176999900"), record(ts=nonsense, sn="5")]).encode()
    parsed = parse(body)
    assert [beacon.clock_offset_ms for beacon in parsed.accepted] == [100]
    assert [rejected.reason for rejected in parsed.rejected] == ["invalid"]


def test_a_text_that_is_too_long_is_refused_however_well_it_is_packed() -> None:
    body = "\n".join([record(), record(sn="5", cid='"' + "ab c" * 20_000 + '"')]).encode()
    for sent in (body, gzip.compress(body)):
        rules = Rules(unpack_ratio_max=10_000)
        parsed = cmcd.parse_records(post(sent, key="acme"), rules)
        assert [beacon.seq for beacon in parsed.accepted] == [4]
        assert [rejected.reason for rejected in parsed.rejected] == ["too_large"]


def test_a_playhead_written_as_a_list_is_kept_as_it_was_sent() -> None:
    beacon = parse(record(pt="(5 6)").encode()).accepted[0]
    assert beacon.playhead_ms is None
    assert beacon.attrs["pt"] == [[5, None], [6, None]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (record(sid=None), "invalid"),
        (record(sid='"' + "s" * 65 + '"'), "invalid"),
        (record(sid="12"), "invalid"),
        (record(e=None), "invalid"),
        (record(e=""), "invalid"),
        (record(ts=None), "invalid"),
        (record(ts="soon"), "invalid"),
        (record(ts="-5"), "invalid"),
        (record(sn="-1"), "invalid"),
        (record(v="3"), "unknown_version"),
        (record(v='"two"'), "unknown_version"),
        ("e=t,,", "undecodable"),
        (record(cid='"' + "c" * 70_000 + '"'), "too_large"),
    ],
)
def test_a_bad_record_is_rejected_and_its_neighbours_are_not(line: str, reason: str) -> None:
    parsed = parse("\n".join([record(sn="1"), line, record(sn="3")]).encode())
    assert [beacon.seq for beacon in parsed.accepted] == [1, 3]
    assert [(rejected.reason, rejected.value.decode()) for rejected in parsed.rejected] == [(reason, line)]


def test_a_record_without_a_number_is_rejected_by_that_name() -> None:
    parsed = parse("\n".join([record(sn="1"), record(sn=None)]).encode())
    assert [beacon.seq for beacon in parsed.accepted] == [1]
    assert [one.reason for one in parsed.rejected] == ["unnumbered"]


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""])
def test_a_byte_order_mark_at_the_beginning_of_a_body_or_line_costs_no_record(mark: bytes) -> None:
    parsed = parse(b"\n".join(mark + record(sn=str(number)).encode() for number in (1, 2)))
    assert ([beacon.seq for beacon in parsed.accepted], parsed.rejected) == ([1, 2], [])


@pytest.mark.parametrize(
    ("body", "fields", "reason"),
    [
        (b"", {}, "invalid"),
        (b"\n \n", {}, "invalid"),
        (b"\xff\xff", {}, "undecodable"),
        (CMCD_RECORD.encode(), {"key": "a b"}, "invalid"),
        (b"\n".join([CMCD_RECORD.encode()] * 3_601), {}, "too_large"),
        (b"e=t", {"whole": False}, "too_large"),
    ],
)
def test_a_body_that_holds_no_records_is_rejected_as_it_came(body: bytes, fields: dict[str, Any], reason: str) -> None:
    parsed = parse(body, **fields)
    assert parsed.accepted == []
    assert [(rejected.reason, rejected.value) for rejected in parsed.rejected] == [(reason, body)]


def test_a_customer_that_is_not_ours_is_rejected() -> None:
    parsed = cmcd.parse_records(
        post(CMCD_RECORD.encode(), key="stranger"), Rules(customers=Customers({"acme": Customer()}))
    )
    assert [(rejected.reason, rejected.customer_id) for rejected in parsed.rejected] == [
        ("unknown_customer", "stranger")
    ]


@given(st.lists(st.text(max_size=30) | st.just(CMCD_RECORD), max_size=4))
def test_every_line_becomes_a_beacon_or_is_rejected(lines: list[str]) -> None:
    parsed = parse("\n".join(lines).encode("utf-8", "replace"))
    count = sum(1 for line in "\n".join(lines).split("\n") if line.strip(" \t\r"))
    assert len(parsed.accepted) + len(parsed.rejected) == max(count, 1)
    for beacon in parsed.accepted:
        assert BEACON.decode(BEACON.encode(beacon)) == beacon
