"""Requests of a view from its beacons: they are those that its row counts, of real players and of hostile ones."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.collector.intake.cmcd import cmcd as cmcd_intake
from services.collector.intake.post import Rules
from services.query.core.resources.view import requests_of_view
from services.query.core.resources.view.requests_of_view import AskedRequests, MediaRequest, RequestList
from shared import codec
from shared.schemas.beacon import SEQ_MAX, Beacon
from shared.schemas.view import NUMBER_MAX, View
from tests.unit.collector.intake.bodies import FIXTURES, post
from tests.unit.processor.applications.video_views import captured
from tests.unit.processor.applications.video_views.beacons import T0, cmcd, folded_fast, mux, rows, watch

CMCD: Final = sorted(path.name for path in Path(FIXTURES).glob("cmcd-*.txt") if "my-video" in path.read_text())
#: What a client may send in place of a number.
HOSTILE: Final[tuple[Any, ...]] = (
    *(0, 1, -1, 40, 250, 700, 1e300, float("1e18"), 2**63, -(2**70), 0.4, "12", "-3", "", "abc", "nan", "inf"),
    *(True, False, None, [], [[5, None]], [[]], {}, {"a": 1}, T0, T0 + 50, str(T0 + 90), "1e400"),
)


def listed(row: View, beacons: Sequence[Beacon], limit: int = 1_000, cursor: str = "") -> RequestList:
    return of_values(msgspec.to_builtins(row), [codec.BEACON.encode(one) for one in beacons], limit, cursor)


def of_values(row: dict[str, Any], values: Sequence[bytes], limit: int = 1_000, cursor: str = "") -> RequestList:
    asked = AskedRequests(customer=row["customer_id"], limit=limit, cursor=cursor)
    page, behind = requests_of_view.page_of(row["view_id"], asked)
    return requests_of_view.request_list(row, page, behind, [{"value": one} for one in values], False)


def rows_of(beacons: Sequence[Beacon]) -> list[View]:
    """The newest revision of each view."""
    return list({row.view_id: row for row in rows(folded_fast(beacons, ()))}.values())


def counted(requests: Sequence[MediaRequest]) -> dict[str, int | None]:
    """What a row counts of such requests (docs/view.md)."""
    completed = [one for one in requests if one.outcome == "completed"]

    def total(name: str) -> int | None:
        known = [value for one in completed if (value := getattr(one, name)) is not None]
        return min(sum(known), NUMBER_MAX) if known else None

    return {
        "req_count": len(requests),
        "req_failed": sum(one.outcome == "failed" for one in requests),
        "req_canceled": sum(one.outcome == "canceled" for one in requests),
        "req_bytes": total("size_bytes"),
        "req_time_ms": total("time_ms"),
        "ttfb_sum_ms": total("ttfb_ms"),
        "ttfb_max_ms": max((one.ttfb_ms for one in completed if one.ttfb_ms is not None), default=None),
    }


def of_row(row: View) -> dict[str, int | None]:
    return {name: getattr(row, name) for name in counted([])}


def of_capture(name: str) -> list[Beacon]:
    body = (Path(FIXTURES) / name).read_bytes()
    parsed = cmcd_intake.parse_records(post(body, key="acme", origin="/cmcd/acme"), Rules())
    assert parsed.rejected == []
    return parsed.accepted


@pytest.mark.parametrize("capture", ["watched", "ads", "stalled", *CMCD])
def test_the_requests_of_a_captured_view_are_those_that_its_row_counts(capture: str) -> None:
    of_mux = {"watched": captured.mux_watched, "ads": captured.mux_with_ads, "stalled": captured.cmcd_stalled}
    beacons = list(of_mux[capture]()) if capture in of_mux else of_capture(capture)
    (row,) = rows_of(beacons)
    assert row.req_count
    for seed in range(3):
        mixed = random.Random(seed).sample([*beacons, *beacons[::3]], len(beacons) + len(beacons[::3]))
        found = listed(row, mixed)
        assert counted(found.requests) == of_row(row)
        assert (found.requests_n, found.beacons_n, found.is_cut) == (row.req_count, len(mixed), False)
        times = [one.at_ms for one in found.requests]
        assert times == sorted(times)


def test_what_a_captured_mux_request_was() -> None:
    beacons = list(captured.mux_with_ads())
    (row,) = rows_of(beacons)
    found = listed(row, beacons).requests
    offset_ms = min(one.clock_offset_ms or 0 for one in beacons)
    assert [row.view_start_ms + one.at_ms for one in found] == [
        one.attrs["request_start"] + offset_ms for one in beacons if one.event == "request"
    ]
    assert found[0] == MediaRequest(
        at_ms=found[0].at_ms,
        outcome="completed",
        ttfb_ms=40,
        time_ms=190,
        size_bytes=100_000,
        throughput_bps=4_210_526,
        kind="media",
        host="cdn.example.com",
    )
    # mux-embed repeats what the request before had: these two never got so far.
    assert [(one.outcome, one.ttfb_ms, one.time_ms, one.size_bytes, one.code) for one in found[3:]] == [
        ("failed", None, None, None, "404"),
        ("canceled", None, None, None, None),
    ]


def test_what_a_captured_cmcd_request_was() -> None:
    beacons = of_capture("cmcd-dash.js-5.2.1-error.txt")
    (row,) = rows_of(beacons)
    found = listed(row, beacons).requests
    first = found[0]
    assert (first.kind, first.host, first.file, first.time_ms) == (
        "manifest",
        "media.example.com",
        "main.mpd",
        3_217,
    )
    assert {one.code for one in found if one.outcome == "failed"} == {"404"}


def test_a_native_player_reports_a_request_when_it_is_over() -> None:
    begin = Beacon(
        schema_version=1,
        source="native",
        customer_id="acme",
        view_id="v1",
        event="viewstart",
        source_event="viewstart",
        recv_time_ms=T0 + 30,
        client_time_ms=T0,
        clock_offset_ms=30,
    )
    attrs = {"request_ms": 300, "request_ttfb_ms": "20", "request_bytes": 9_000, "request_outcome": "completed"}
    request = msgspec.structs.replace(begin, event="request", client_time_ms=T0 + 1_000, attrs=attrs)
    other = msgspec.structs.replace(request, attrs={"request_outcome": "canceled"})
    beacons = [begin, msgspec.structs.replace(begin, event="playing", client_time_ms=T0 + 600), request, other, request]
    (row,) = rows_of(beacons)
    found = listed(row, beacons).requests
    assert found == [
        MediaRequest(at_ms=700, outcome="completed", ttfb_ms=20, time_ms=300, size_bytes=9_000, throughput_bps=240_000),
        MediaRequest(at_ms=1_000, outcome="canceled"),
    ]
    assert counted(found) == of_row(row)


values = st.sampled_from(HOSTILE) | st.integers(-10, T0 + 900)


@st.composite
def copied(draw: st.DrawFn, beacons: list[Beacon]) -> list[Beacon]:
    """They and some of them again, of other content too."""
    copies = draw(st.lists(st.sampled_from(beacons), max_size=4))
    others = draw(st.lists(st.sampled_from(beacons), max_size=2))
    delay_ms = st.integers(-300, 3_000)
    changed = [
        *(msgspec.structs.replace(one, recv_time_ms=one.recv_time_ms + draw(delay_ms)) for one in copies),
        *(
            msgspec.structs.replace(one, attrs=one.attrs | {"rc": 500, "request_bytes_loaded": 7})
            for one in others
            if one.event == "request"
        ),
    ]
    return [*beacons, *changed]


def offset(beacon: Beacon, by_ms: int) -> Beacon:
    """The beacon of a request that took so much longer to the collector."""
    offset_ms = (beacon.clock_offset_ms or 0) + by_ms
    return msgspec.structs.replace(beacon, clock_offset_ms=offset_ms, recv_time_ms=beacon.recv_time_ms + by_ms)


@st.composite
def mux_views(draw: st.DrawFn) -> list[Beacon]:
    """Views whose requests name some of their figures, or send anything in their place."""
    names = ("request_start", "request_response_start", "request_response_end", "request_bytes_loaded")
    said = draw(st.lists(st.dictionaries(st.sampled_from(names), values), max_size=6))
    events = [draw(st.sampled_from(("requestcompleted", "requestfailed", "requestcanceled", "else"))) for _ in said]
    first = draw(st.sampled_from((11, 11, SEQ_MAX - 2)))
    requests = [
        msgspec.structs.replace(mux(first + number, "request", 14_000 + number, **attrs), source_event=event)
        for number, (attrs, event) in enumerate(zip(said, events, strict=True))
    ]
    delays = st.integers(0, 900)
    return draw(st.permutations(draw(copied([offset(one, draw(delays)) for one in [*watch(), *requests]]))))


@st.composite
def cmcd_views(draw: st.DrawFn) -> list[Beacon]:
    said = draw(st.lists(st.dictionaries(st.sampled_from(("rc", "ttfb", "ttlb", "url", "ot")), values), max_size=6))
    requests = [cmcd(2 + number, "request", 100 * number, e="rr", **attrs) for number, attrs in enumerate(said)]
    end = cmcd(2 + len(said), "viewend", 60_000, e="ps", sta="q")
    beacons = [cmcd(0, "viewstart", 0, e="ps", sta="s"), cmcd(1, "playing", 10, e="ps", sta="p"), *requests, end]
    delays = st.integers(0, 900)
    return draw(copied([offset(one, draw(delays)) for one in beacons]))


@given(mux_views() | cmcd_views())
def test_the_requests_of_any_view_are_those_that_its_row_counts(beacons: list[Beacon]) -> None:
    (row,) = rows_of(beacons)
    found = listed(row, beacons).requests
    sums = of_row(row)
    if row.req_count is None:
        assert found == []
        return
    assert counted(found) == sums
    msgspec.json.decode(msgspec.json.encode(found), type=list[MediaRequest])


@st.composite
def sessions(draw: st.DrawFn) -> list[Beacon]:
    """Two or three plays of a session, each by a network of its own."""
    found = []
    for play in range(draw(st.integers(2, 3))):
        at_ms, delay_ms = 30_000 * play, draw(st.sampled_from((30, 700, 9_000)))
        times = sorted(draw(st.lists(st.integers(600, 8_900), max_size=4, unique=True)))
        beacons = [
            cmcd(0, "viewstart", at_ms, e="ps", sta="s"),
            cmcd(1, "playing", at_ms + 500, e="ps", sta="p"),
            *(cmcd(2 + at, "request", at_ms + ms, e="rr", rc=200, ttlb=20) for at, ms in enumerate(times)),
            cmcd(2 + len(times), "viewend", at_ms + 9_000, e="ps", sta="q"),
        ]
        found += [offset(one, delay_ms + draw(st.integers(0, 20))) for one in beacons]
    return found


@given(sessions())
def test_the_requests_of_each_play_are_placed_by_its_own_clock_offset(beacons: list[Beacon]) -> None:
    for row in rows_of(beacons):
        found = listed(row, beacons).requests
        play = (row.view_epoch or 1) - 1
        own = [one for one in beacons if one.client_time_ms - T0 - 30_000 * play in range(10_000)]
        assert counted(found)["req_count"] == (row.req_count or 0)
        assert [one.at_ms for one in found] == [
            one.client_time_ms - T0 - 30_000 * play for one in own if one.event == "request"
        ]


@pytest.mark.parametrize("delays_ms", [(30, 700), (30, 9_000), (9_000, 30), (700, 30)])
def test_a_play_whose_first_beacon_is_gone_is_placed_by_those_that_came_while_it_lasted(
    delays_ms: tuple[int, int],
) -> None:
    beacons = [
        offset(one, delay_ms)
        for play, delay_ms in enumerate(delays_ms)
        for one in (
            cmcd(0, "viewstart", 30_000 * play, e="ps", sta="s"),
            cmcd(1, "playing", 30_000 * play + 500, e="ps", sta="p"),
            cmcd(2, "request", 30_000 * play + 600, e="rr", rc=200),
            cmcd(3, "heartbeat", 30_000 * play + 14_000, e="t", sta="p"),
            cmcd(4, "viewend", 30_000 * play + 15_000, e="ps", sta="q"),
        )
    ]
    _, second = rows_of(beacons)
    kept = [one for one in beacons if not (one.event in ("viewstart", "viewend") and one.client_time_ms > T0 + 15_000)]
    assert [one.at_ms for one in listed(second, kept).requests] == [600]


def test_each_play_of_a_session_has_its_own_requests() -> None:
    first = [
        cmcd(0, "viewstart", 0, e="ps", sta="s", cid="one"),
        cmcd(1, "playing", 500, e="ps", sta="p", cid="one"),
        cmcd(2, "request", 600, e="rr", ttlb=50, rc=200, cid="one"),
        cmcd(3, "viewend", 9_000, e="ps", sta="q", cid="one"),
    ]
    second = [
        cmcd(0, "viewstart", 20_000, e="ps", sta="s", cid="two"),
        cmcd(1, "playing", 20_500, e="ps", sta="p", cid="two"),
        cmcd(2, "request", 20_600, e="rr", ttlb=50, rc=404, cid="two"),
        cmcd(3, "request", 20_700, e="rr", ttlb=70, rc=200, cid="two"),
        cmcd(4, "viewend", 29_000, e="ps", sta="q", cid="two"),
    ]
    beacons = [*first, *second]
    found = {row.view_id: (row, listed(row, beacons).requests) for row in rows_of(beacons)}
    assert {name: [one.at_ms for one in requests] for name, (_, requests) in found.items()} == {
        "s1": [600],
        "s1.2": [600, 700],
    }
    assert all(counted(requests) == of_row(row) for row, requests in found.values())


def test_what_a_mux_client_does_not_repeat_is_as_before() -> None:
    first = mux(
        11,
        "request",
        14_000,
        request_start=T0 + 13_000,
        request_response_start=T0 + 13_100,
        request_response_end=T0 + 13_400,
        request_bytes_loaded=5_000,
        request_type="video",
        request_hostname="cdn.example",
        request_url="https://cdn.example/live.m3u8?t=1",
    )
    again = mux(12, "request", 15_000, request_start=T0 + 14_500, request_response_end=T0 + 14_700)
    beacons = [*watch(), again, first]
    (row,) = rows_of(beacons)
    found = listed(row, beacons).requests
    assert counted(found) == of_row(row)
    assert [(one.size_bytes, one.kind, one.host, one.file) for one in found] == [
        (5_000, "video", "cdn.example", "live.m3u8")
    ] * 2


def test_beacons_of_another_client_bytes_and_clients_that_report_none_are_no_requests() -> None:
    beacons = [*watch(), cmcd(4, "request", 100, view_id="v1", rc=200), mux(11, "request", 14_000)]
    (row,) = rows_of(watch())
    values = [codec.BEACON.encode(one) for one in beacons]
    bad = [b"", b"\xff", b"[" * 5_000, b'{"event":"request"}', values[-1].replace(b'"seq":11', b'"seq":0')]
    found = of_values(msgspec.to_builtins(row), [*bad, *values])
    assert (found.requests_n, found.beacons_n) == (1, len(bad) + len(values))
    for source in ("epas", "unheard of"):
        other = msgspec.to_builtins(row) | {"source": source}
        assert of_values(other, values).requests == []


@pytest.mark.parametrize("source", ["mux", "native"])
def test_a_view_has_no_requests_of_another_whose_id_begins_as_its_own(source: Any) -> None:
    request = mux(11, "request", 14_000, view_id="1790.5")
    row = {"customer_id": "acme", "view_id": "1790.5", "source": source, "view_start_ms": T0, "view_end_ms": T0 + 9_000}
    values = [
        codec.BEACON.encode(msgspec.structs.replace(request, view_id=one, source=source, seq=20 + number))
        for number, one in enumerate(("1790.5", "1790", "1790.5.2"))
    ]
    assert of_values(row, values).requests_n == 1
    assert of_values(row | {"view_epoch": 2}, values).requests_n == 1


def test_numbers_that_the_fold_refuses_are_no_requests_and_the_copy_that_came_first_counts() -> None:
    beacons = [
        *watch(),
        mux(11, "heartbeat", 13_950),
        mux(11, "request", 14_000),
        mux(12, "request", 14_100, request_type="first"),
        # Received first, yet appended later, as by another collector.
        msgspec.structs.replace(mux(12, "request", 14_100, request_type="second"), recv_time_ms=T0),
        mux(SEQ_MAX, "request", 14_200),
        mux(SEQ_MAX + 1, "request", 14_300),
    ]
    (row,) = rows_of(beacons)
    found = listed(row, beacons).requests
    # mux-embed does not repeat what is as before.
    assert [one.kind for one in found] == ["first", "first"]
    assert counted(found) == of_row(row)


def test_a_play_that_begins_at_the_time_0_of_its_clock_has_its_requests_in_their_places() -> None:
    view = [
        cmcd(0, "viewstart", 0, sta="s"),
        cmcd(1, "request", 1_000, sta="p", rc=200, ttfb=40, ttlb=120),
        cmcd(2, "playing", 2_000, sta="p"),
        cmcd(3, "viewend", 9_000, sta="q"),
    ]
    # Its first request was the quickest.
    offsets = (T0 + 1_500, T0 + 2_000, T0 + 2_000, T0 + 2_000)
    beacons = [
        msgspec.structs.replace(
            one,
            client_time_ms=one.client_time_ms - T0,
            clock_offset_ms=offset_ms,
            recv_time_ms=one.client_time_ms - T0 + offset_ms,
        )
        for one, offset_ms in zip(view, offsets, strict=True)
    ]
    (row,) = rows_of(beacons)
    (request,) = listed(row, beacons).requests
    # A time of 0 counts as 1.
    assert (row.view_start_ms, request.at_ms) == (T0 + 1_501, 999)
