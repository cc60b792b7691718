"""The whole HTTP application: hostile requests, and what operators ask."""

import pytest
from aiohttp import web

from services.dashboard.app import make_app, make_runner
from services.dashboard.arrivals.picture import Read
from services.dashboard.arrivals.routes import ArrivalRoutes
from services.rim.http.lookups import LookupsAway, LookupsRefused
from services.rim.http.openapi import CSRF_HEADER
from tests.unit.dashboard.desk import (
    NOW_MS,
    STREAMS_MAX,
    Desk,
    FakeArrivals,
    FakeLimits,
    FakePast,
    FakeViews,
    quiet_board,
)
from tests.unit.dashboard.door import OWNER, cookie_header, door
from tests.unit.hostile_requests import hostile_bodies, hostile_requests, paths_of, status_of

#: What the routes of accounts take.
ACCOUNT_BODIES = [
    {"email": "a@example.com", "password": "a fairly long one 7"},
    {"link": "phl_1", "email": "a@example.com", "name": "A", "password": "a fairly long one 7", "organisation": "Home"},
    {"name": "a token", "scopes": ["read_metrics"], "customers": ["acme"], "days": 3},
]


@pytest.mark.thorough
async def test_no_request_is_answered_500(caplog: pytest.LogCaptureFixture) -> None:
    views = FakeViews()
    views.answer = b'{"found":{"state":"open","row":{"view_id":"a","video_title":"x"}}}'
    came = FakeArrivals()
    came.beacons = [Read(1, b"a:v", b"{}", {}), Read(2, b"a:\xff/../x", b"\xff", {"customer": "\ufffd"})]
    app = make_app(
        quiet_board(),
        views,
        door(),
        streams_max=STREAMS_MAX,
        now_ms=lambda: NOW_MS,
        limits=FakeLimits(),
        past=FakePast(),
        arrivals=ArrivalRoutes(came, lambda: NOW_MS),
    )
    runner = make_runner(app, 1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    known = ["/v1/limits?customer=a"]
    known += ["/v1/arrivals?customer=a", "/v1/open-views?customer=a&viewer=x", "/v1/open-views?customer=a"]
    known += ["/v1/live/history?customer=a&from_ms=0&until_ms=60000"]
    paths = [*paths_of(app), *known, "/v1/customers?limit=1&cursor=a", "/static/", "/x"]
    bodies = [b"", b"{", *hostile_bodies(ACCOUNT_BODIES, 50)]
    logged_in = [cookie_header(OWNER), f"{CSRF_HEADER}: {OWNER.csrf}".encode()]
    changes = [path for path in paths if path.startswith("/v1/") and "live" not in path]
    requests = [*hostile_requests(300, paths, bodies, logged_in), *hostile_requests(300, changes, bodies, logged_in, 1)]
    for request in requests:
        status = await status_of(runner.addresses[0][1], request)
        assert status < 500 or status == 503, request[:2_000]
    assert not [record for record in caplog.records if record.exc_info]
    await runner.cleanup()


async def test_partitions_are_passed_on_and_have_a_page(desk: Desk) -> None:
    desk.views.answer = b'{"application": "video_views"}'
    assert await desk.json("/v1/partitions") == {"application": "video_views"}
    page = await (await desk.client.get("/partitions")).text()
    assert "/static/pages/partitions.js" in page
    for problem, status in ((LookupsAway(""), 503), (LookupsRefused(""), 502)):
        desk.views.answer = problem
        assert (await desk.json("/v1/partitions", status))["title"]


async def test_every_answer_has_a_policy_but_scripts_and_styles_which_are_under_their_documents(desk: Desk) -> None:
    for path in ("/static/main.js", "/static/styles/screens.css", "/static/icon.svg", "/login", "/v1/live", "/no-such"):
        async with desk.client.get(
            path, headers={"Cookie": cookie_header(OWNER).decode().partition(": ")[2]}
        ) as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert ("Content-Security-Policy" in answer.headers) == (not path.endswith((".js", ".css"))), path
