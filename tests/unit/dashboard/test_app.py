"""The HTTP application on a board and a serving database in memory."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import REGISTRY

from services.accounts.core.customer_scope import CustomerScope
from services.accounts.http.guard import CSRF_HEADER
from services.dashboard.app import make_app, make_runner
from services.dashboard.arrivals.picture import Read
from services.dashboard.arrivals.reading import Newest
from services.dashboard.arrivals.routes import ArrivalRoutes
from services.dashboard.limits.queries import CustomerLimits, Limit
from services.dashboard.live.board import LiveBoard
from services.dashboard.live.history import LiveHistory
from services.dashboard.live.past import AskedPast, Row
from services.dashboard.quality.figures import RollupSum
from services.dashboard.quality.queries import Rollups
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.lookups import LookupsAway, LookupsRefused
from shared.schemas.live import BUCKET_MS
from tests.unit.dashboard.door import OWNER, cookie_header, cookies, door
from tests.unit.dashboard.records import live, slice_of
from tests.unit.hostile_requests import hostile_bodies, hostile_requests, paths_of, status_of

NOW = datetime(2026, 5, 17, 14, 25, 31, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1_000)
STREAMS_MAX = 2
SECONDS_MAX = 20


#: What the routes of accounts take.
ACCOUNT_BODIES = [
    {"email": "a@example.com", "password": "a fairly long one 7"},
    {"link": "phl_1", "email": "a@example.com", "name": "A", "password": "a fairly long one 7", "organisation": "Home"},
    {"name": "a token", "scopes": ["read_metrics"], "customers": ["acme"], "days": 3},
]


class FakeServing:
    """Returns what the test sets, and remembers the requests."""

    def __init__(self) -> None:
        self.answer: Rollups | Exception = Rollups([], {}, None, None)
        self.asked: list[datetime] = []
        self.scopes: list[CustomerScope] = []

    async def rollups_since(self, since: datetime, scope: CustomerScope) -> Rollups:
        self.asked.append(since)
        self.scopes.append(scope)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class FakeViews:
    """Returns what the test sets, and remembers the requests."""

    def __init__(self) -> None:
        self.answer: bytes | Exception | None = None
        self.asked: list[tuple[str, str]] = []

    async def partitions(self) -> bytes:
        if isinstance(self.answer, Exception):
            raise self.answer
        assert self.answer is not None
        return self.answer

    async def view(self, customer_id: str, view_id: str) -> bytes | None:
        self.asked.append((customer_id, view_id))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class FakePast:
    """Returns what the test sets, and remembers the questions."""

    def __init__(self) -> None:
        self.answer: list[Row] | Exception = []
        self.asked: list[AskedPast] = []

    async def rows(self, asked: AskedPast) -> list[Row]:
        self.asked.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class FakeArrivals:
    """A reader of what the test puts here."""

    def __init__(self) -> None:
        self.beacons: list[Read] = []

    def newest(self, now_ms: int) -> Newest:
        return Newest(self.beacons, self.beacons, is_cut=False)


class FakeLimits:
    """Returns what the test sets, and remembers the requests."""

    def __init__(self) -> None:
        self.answer: CustomerLimits | Exception | None = None
        self.asked: list[str] = []

    async def of(self, customer_id: str) -> CustomerLimits | None:
        self.asked.append(customer_id)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Desk:
    """The application at work, its board settling, and a client to it."""

    def __init__(self) -> None:
        self.serving = FakeServing()
        history = LiveHistory(history_ms=600_000, settle_ms=0, customers_max=10)
        self.board = LiveBoard(history, now_ms=lambda: NOW_MS)
        self.views = FakeViews()
        self.limits = FakeLimits()
        self.past = FakePast()
        app = make_app(
            self.board,
            self.serving,
            self.views,
            door(),
            streams_max=STREAMS_MAX,
            unpublished_ms_max=120_000,
            now_ms=lambda: NOW_MS,
            limits=self.limits,
            past=self.past,
        )
        self.client = TestClient(TestServer(app), cookies=cookies(OWNER))

    async def json(self, path: str, status: int = 200) -> dict[str, Any]:
        answer = await self.client.get(path)
        assert answer.status == status
        content: dict[str, Any] = await answer.json()
        return content


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    await made.client.start_server()
    settling = asyncio.create_task(made.board.keep_settling())
    yield made
    made.board.close()
    settling.cancel()
    await made.client.close()


async def next_picture(stream: ClientResponse) -> dict[str, Any]:
    async with asyncio.timeout(SECONDS_MAX):
        async for text in stream.content:
            if text.startswith(b"data: "):
                picture: dict[str, Any] = json.loads(text[6:])
                return picture
    raise AssertionError("the stream ended")


async def test_live_shows_that_nothing_was_counted_yet(desk: Desk) -> None:
    picture = await desk.json("/v1/live")
    assert (picture["state"], picture["now_ms"], picture["shown_until_ms"]) == ("waiting", NOW_MS, None)


async def test_a_stream_sends_the_picture_at_once_and_then_whenever_it_changes(desk: Desk) -> None:
    stream = await desk.client.get("/v1/live/stream")
    assert stream.content_type == "text/event-stream"
    assert (await next_picture(stream))["state"] == "waiting"
    desk.board.take_records([live(100, viewers_now=3)])
    first = await next_picture(stream)
    assert (first["state"], first["now"]["viewers_now"]) == ("live", 3)
    desk.board.take_records([live(101, viewers_now=4)])
    second = await next_picture(stream)
    assert second["series"]["viewers_now"] == [3, 4]
    assert [(one["customer"], one["now"]["viewers_now"]) for one in second["customers"]] == [("acme", 4)]


async def test_a_broker_that_is_away_shows_in_the_picture_and_so_does_its_return(desk: Desk) -> None:
    desk.board.take_records([live(100, viewers_now=3)])
    stream = await desk.client.get("/v1/live/stream")
    await asyncio.to_thread(desk.board.set_reachable, False)
    # What was shown stays, and is marked as old.
    while (picture := await next_picture(stream))["state"] != "away" or picture["now"] is None:
        pass
    assert picture["now"]["viewers_now"] == 3
    await asyncio.to_thread(desk.board.set_reachable, True)
    while (await next_picture(stream))["state"] != "live":
        pass


async def test_records_may_be_handed_over_from_another_thread(desk: Desk) -> None:
    stream = await desk.client.get("/v1/live/stream")
    await asyncio.to_thread(desk.board.hand_over, [live(100, viewers_now=9)])
    while (picture := await next_picture(stream))["state"] != "live":
        pass
    assert picture["now"]["viewers_now"] == 9


async def test_open_streams_lock_no_page_out(desk: Desk) -> None:
    """With as many as may be, the one that has been open longest ends."""
    streams = [await desk.client.get("/v1/live/stream") for _ in range(STREAMS_MAX)]
    for stream in streams:
        await next_picture(stream)
    page = await desk.client.get("/v1/live/stream")
    await next_picture(page)
    with contextlib.suppress(aiohttp.ClientError):
        async with asyncio.timeout(SECONDS_MAX):
            await streams[0].content.read()
    assert streams[0].content.at_eof() or streams[0].content.exception() is not None
    assert REGISTRY.get_sample_value("playhead_dashboard_streams") == STREAMS_MAX
    for stream in (*streams[1:], page):
        stream.close()


async def test_closing_the_board_ends_every_stream(desk: Desk) -> None:
    stream = await desk.client.get("/v1/live/stream")
    await next_picture(stream)
    desk.board.close()
    async with asyncio.timeout(SECONDS_MAX):
        await stream.content.read()
    assert stream.content.at_eof()
    assert (await desk.json("/v1/live/stream", 503))["type"].endswith("stopping")


async def test_quality_is_queried_by_whole_hours_and_returned_per_customer(desk: Desk) -> None:
    newest = datetime(2026, 5, 17, 13, tzinfo=UTC)
    sums = RollupSum("acme", 100, 98, 1, 4, 1, 50_000, 39_500, 500, 1e9, 1_000)
    desk.serving.answer = Rollups(
        [sums],
        {"acme": {0: 5}},
        newest,
        NOW - timedelta(seconds=30),
        {"acme": ["mux"]},
        customers_omitted=3,
        gathered={"acme": ["video_id"]},
    )
    quality = await desk.json("/api/quality?hours=24")
    assert desk.serving.asked == [datetime(2026, 5, 16, 15, tzinfo=UTC)]
    assert quality["newest_hour_ms"] == round(newest.timestamp() * 1_000)
    assert quality["customers_omitted"] == 3
    assert quality["gathered_dimensions"] == {"acme": ["video_id"]}
    assert (quality["published_ms"], quality["missing_since_ms"], quality["is_old"]) == (NOW_MS - 30_000, None, False)
    assert quality["customers"] == [
        {
            "customer_id": "acme",
            "views": 100,
            "startup_ms_median": 1,
            "startup_ms_p95": 1,
            "startup_sources": ["mux"],
            "by_source": {},
            "rebuffer_fraction": 0.01,
            "rebuffer_ratio": 0.0125,
            "failure_fraction": 0.04,
            "startup_failure_fraction": 0.01,
            "exit_before_start_fraction": 0.01,
            "bitrate_bps": 1_000_000,
        }
    ]


@pytest.mark.parametrize(
    ("published_seconds_ago", "finished_seconds_ago", "is_old"),
    [
        (30, [200], False),
        (300, [300], False),
        (300, [200, 100], True),
        (300, [60], False),
        (None, [200], True),
        (None, [], False),
    ],
    ids=(
        "after the view",
        "with the view",
        "long before the view",
        "a little before it",
        "never",
        "never, and no view",
    ),
)
async def test_quality_is_old_when_a_view_that_finished_long_ago_was_not_published(
    desk: Desk, published_seconds_ago: int | None, finished_seconds_ago: list[int], is_old: bool
) -> None:
    now_bucket = NOW_MS // BUCKET_MS
    desk.board.take_records([live(now_bucket - 400 // 5), live(now_bucket)])
    desk.board.take_records([live(now_bucket - seconds // 5, views_finished=1) for seconds in finished_seconds_ago])
    published_at = None if published_seconds_ago is None else NOW - timedelta(seconds=published_seconds_ago)
    desk.serving.answer = Rollups([], {}, None, published_at)
    assert (await desk.json("/api/quality"))["is_old"] == is_old


@pytest.mark.parametrize(
    ("problem", "status", "error"),
    [(PostgresAway("x"), 503, "away"), (NotPublished("x"), 503, "unpublished"), (QueryRefused("x"), 500, "refused")],
)
async def test_quality_says_what_is_missing(desk: Desk, problem: Exception, status: int, error: str) -> None:
    desk.serving.answer = problem
    assert (await desk.json("/api/quality", status))["error"] == error


@pytest.mark.parametrize("hours", ["0", "-1", "8785", "many", ""])
async def test_windows_out_of_bounds_are_refused_without_asking(desk: Desk, hours: str) -> None:
    assert (await desk.json(f"/api/quality?hours={hours}", 400))["error"] == "hours"
    assert desk.serving.asked == []


async def test_slices_are_of_the_customer_that_is_looked_at_and_follow_the_picture(desk: Desk) -> None:
    assert (await desk.json("/v1/live?customer=acme"))["slices"] == {}
    stream = await desk.client.get("/v1/live/stream")
    await next_picture(stream)
    bucket = NOW_MS // BUCKET_MS
    desk.board.take_records([live(bucket, slices={"cdn=x": slice_of(viewers_now=3)}, viewers_now=4)])
    await next_picture(stream)
    picture = await desk.json("/v1/live?customer=acme")
    assert [(one["value"], one["viewers_now"]) for one in picture["slices"]["cdn"]] == [("x", 3)]
    assert (await desk.json("/v1/live"))["slices"] == picture["slices"]
    assert (await desk.json("/v1/live?customer=globex"))["slices"] == {}
    # The figures of one slice, in the place of the customer's.
    assert picture["now"]["viewers_now"] == 4
    of_slice = await desk.json("/v1/live?customer=acme&slice=cdn%3Dx")
    assert (of_slice["now"]["viewers_now"], of_slice["series"]["viewers_now"]) == (3, [3])
    unknown = await desk.json("/v1/live?customer=acme&slice=cdn%3Dy")
    assert unknown["now"]["viewers_now"] == 0
    assert (await desk.json("/v1/live?costumer=acme", 400))["type"].endswith("wrong-question")


async def test_no_request_is_answered_500(caplog: pytest.LogCaptureFixture) -> None:
    views = FakeViews()
    views.answer = b'{"found":{"state":"open","row":{"view_id":"a","video_title":"x"}}}'
    came = FakeArrivals()
    came.beacons = [Read(1, b"a:v", b"{}", {}), Read(2, b"a:\xff/../x", b"\xff", {"customer": "\ufffd"})]
    app = make_app(
        LiveBoard(LiveHistory(history_ms=600_000, settle_ms=0, customers_max=10), now_ms=lambda: NOW_MS),
        FakeServing(),
        views,
        door(),
        streams_max=STREAMS_MAX,
        unpublished_ms_max=120_000,
        now_ms=lambda: NOW_MS,
        limits=FakeLimits(),
        past=FakePast(),
        arrivals=ArrivalRoutes(came, lambda: NOW_MS),
    )
    runner = make_runner(app, 1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    known = ["/api/quality?hours=24", "/api/limits?customer=a"]
    known += ["/v1/arrivals?customer=a", "/v1/open-views?customer=a&viewer=x", "/v1/open-views?customer=a"]
    known += ["/v1/live/history?customer=a&from_ms=0&until_ms=60000"]
    paths = [*paths_of(app), *known, "/v1/customers?limit=1&cursor=a", "/static/", "/x"]
    bodies = [b"", b"{", *hostile_bodies(ACCOUNT_BODIES, 50)]
    logged_in = [cookie_header(OWNER), f"{CSRF_HEADER}: {OWNER.csrf}".encode()]
    changes = [path for path in paths if path.startswith("/api/l") or (path.startswith("/v1/") and "live" not in path)]
    requests = [*hostile_requests(300, paths, bodies, logged_in), *hostile_requests(300, changes, bodies, logged_in, 1)]
    for request in requests:
        status = await status_of(runner.addresses[0][1], request)
        assert status < 500 or status == 503, request[:2_000]
    assert not [record for record in caplog.records if record.exc_info]
    await runner.cleanup()


async def test_partitions_are_passed_on_and_have_a_page(desk: Desk) -> None:
    desk.views.answer = b'{"application": "video_views"}'
    assert await desk.json("/api/partitions") == {"application": "video_views"}
    page = await (await desk.client.get("/partitions")).text()
    assert "/static/partitions.js" in page
    for problem, status in ((LookupsAway(""), 503), (LookupsRefused(""), 502)):
        desk.views.answer = problem
        assert (await desk.json("/api/partitions", status))["detail"]


async def test_a_customers_limits_are_answered_with_what_they_refused(desk: Desk) -> None:
    refused = Limit("beacons_per_second", 5.0, True, 3, 400.0, NOW_MS - 1_000)
    desk.limits.answer = CustomerLimits("acme", [refused], 12.0, 2, {"cdn": 7})
    answer = await desk.json("/api/limits?customer=acme")
    assert desk.limits.asked == ["acme"]
    assert (answer["now_ms"], answer["customer_id"], answer["stored_bytes"]) == (NOW_MS, "acme", 12.0)
    assert (answer["collectors"], answer["gathered"]) == (2, {"cdn": 7})
    assert answer["limits"] == [
        {
            "name": "beacons_per_second",
            "value": 5.0,
            "is_own": True,
            "refused_requests": 3,
            "refused_amount": 400.0,
            "last_refused_ms": NOW_MS - 1_000,
        }
    ]


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (None, 404, "unknown"),
        (PostgresAway("away"), 503, "away"),
        (NotPublished("no schema"), 404, "off"),
        (QueryRefused("other"), 500, "refused"),
    ],
)
async def test_limits_that_cannot_be_answered_say_why(
    desk: Desk, answer: Exception | None, status: int, error: str
) -> None:
    desk.limits.answer = answer
    assert (await desk.json("/api/limits?customer=acme", status))["error"] == error


@pytest.mark.parametrize("query", ["", "?customer=", "?customer=a%20b", "?customer=" + "a" * 65, "?customer=%00"])
async def test_what_names_no_customer_is_not_looked_up(desk: Desk, query: str) -> None:
    assert (await desk.json(f"/api/limits{query}", 400))["error"] == "name"
    assert desk.limits.asked == []


async def test_the_past_of_the_live_picture_is_asked_of_postgres(desk: Desk) -> None:
    minute_ms = 1_000 * 60_000
    question = f"/v1/live/history?customer=acme&from_ms={minute_ms}&until_ms={minute_ms + 120_000}"
    document = '{"steps":12,"values":{"":{"viewers_now":36}}}'
    desk.past.answer = [Row("", 1_001, document)]
    answer = await desk.json(question)
    assert answer == {
        "from_ms": minute_ms,
        "step_ms": 60_000,
        "dimension": "",
        "values": [{"value": "", "series": {"viewers_now": [None, 3]}}],
    }
    assert [(one.customer, one.dimension) for one in desk.past.asked] == [("acme", "")]
    assert (await desk.json(f"{question}&dimension=password", 400))["type"].endswith("wrong-question")
    assert (await desk.json(f"{question}&step_ms=61000", 400))["detail"].startswith("step_ms is")
    for error, status in ((PostgresAway(), 503), (NotPublished(), 503), (QueryRefused(), 503)):
        desk.past.answer = error
        await desk.json(question, status)
