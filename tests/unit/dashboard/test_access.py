"""Every route of the dashboard: who may use it, and whose data it gives."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from aiohttp import web

from services.accounts.core.credentials import Credential, Kind
from services.accounts.http.access import (
    OWNERS,
    AccessUnnamed,
    Routing,
)
from services.accounts.http.guard import CALLERS_OF_ORGANISATION
from services.dashboard.app import ROUTING
from services.dashboard.arrivals.picture import Read
from services.rim.database.pool import PostgresAway
from services.rim.http.lookups import LookupsAway, LookupsRefused
from services.rim.turns.question_limits import TooManyQuestions
from services.rim.turns.rates import TooManyRequests
from tests.unit.dashboard.door import (
    ENDED,
    GLOBEX_ADMIN,
    GLOBEX_VIEWER,
    METRICS_TOKEN,
    OWNER,
    TEAM_TOKEN,
    VIEWS_TOKEN,
    WHOLE_TOKEN,
    credential,
)
from tests.unit.dashboard.guarded_desk import Desk, headers_of, opened
from tests.unit.dashboard.routes import ROUTES

#: What each route of one customer wants beside it.
OF_ONE = {
    "/v1/live/history": "from_ms=0&until_ms=60000",
    "/v1/arrivals": "",
    "/v1/open-views": "viewer=x",
    "/v1/recordings": "session=s",
    "/v1/recordings/payload": "session=s&number=1",
    "/v1/limits": "",
    "/v1/keys": "",
}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened(tmp_path) as made:
        yield made


async def test_every_route_names_who_may_use_it(desk: Desk) -> None:
    found = desk.app[ROUTING].listed()
    assert {route: access for route, access in found.items() if route[0] != "HEAD"} == ROUTES
    assert all(access == found["GET", path] for (method, path), access in found.items() if method == "HEAD")


def test_an_application_with_a_route_that_names_nobody_is_not_made() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    routing = Routing(app)
    app.router.add_get("/v1/new", handler)
    with pytest.raises(AccessUnnamed, match="GET /v1/new"):
        routing.check()


async def test_a_route_that_was_added_later_lets_nobody_in(tmp_path: Path) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response()

    made = Desk(tmp_path)
    made.app.router.add_get("/v1/new", handler)
    await made.client.start_server()
    assert (await made.get("/v1/new", OWNER))[0] == 404
    await made.client.close()


@pytest.mark.parametrize("who", [None, ENDED])
async def test_nobody_is_given_anything_without_a_session(desk: Desk, who: Credential | None) -> None:
    for (method, path), access in ROUTES.items():
        if access.whose in {"public", "elsewhere"}:
            continue
        wanted = f"{path}?customer=globex&{OF_ONE.get(path, '')}"
        wanted = wanted.replace("{id}", "a").replace("{key}", "a").replace("{screen}", "explore")
        async with desk.client.request(method, wanted, headers=headers_of(who), allow_redirects=False) as answer:
            assert answer.status == (302 if access.is_page else 401), path
            if access.is_page:
                assert answer.headers["Location"].startswith("/login")
    assert desk.views.asked == []
    assert desk.limits.asked == []


@pytest.mark.parametrize("header", ["Basic YTpi", "Bearer", "Bearer x", "Digest a", ""])
async def test_nothing_but_a_bearer_token_is_taken_beside_a_session(desk: Desk, header: str) -> None:
    assert (await desk.get("/v1/live", OWNER, Authorization=header))[0] == 401


@pytest.mark.thorough
@pytest.mark.parametrize("path", OF_ONE)
async def test_another_organisations_customer_is_as_unknown_as_one_that_does_not_exist(desk: Desk, path: str) -> None:
    assert {route for (_, route), access in ROUTES.items() if access.whose == "customer"} == OF_ONE.keys()
    desk.views.answer = b"{}"
    others = await desk.get(f"{path}?customer=acme&{OF_ONE[path]}", GLOBEX_ADMIN)
    nobodys = await desk.get(f"{path}?customer=no-such&{OF_ONE[path]}", GLOBEX_ADMIN)
    assert others == nobodys
    assert others[0] == 404
    # Nobody was asked about it: neither the answer nor its time tells whether it exists.
    assert desk.views.asked == []
    assert desk.limits.asked == []
    assert desk.past.asked == []
    # The second one that is named does not count either.
    assert (await desk.get(f"{path}?customer=globex&customer=acme&{OF_ONE[path]}", GLOBEX_ADMIN))[0] == 400


async def test_all_customers_are_those_of_who_asks_and_only_where_a_route_takes_them(desk: Desk) -> None:
    for path in OF_ONE:
        wanted = 200 if path == "/v1/live/history" else 400
        assert (await desk.get(f"{path}?customer=*&{OF_ONE[path]}", GLOBEX_ADMIN))[0] == wanted, path
    await desk.get("/v1/live/history?customer=*&from_ms=0&until_ms=60000", TEAM_TOKEN)
    assert [sorted(scope.own) for scope in desk.past.scopes] == [["globex", "globex-tv"], ["globex"]]
    for wrong in ("customer=*&customer=acme", "customer=*&customer=*", "customer=**"):
        assert (await desk.get(f"/v1/live/history?{wrong}&from_ms=0&until_ms=60000", GLOBEX_ADMIN))[0] == 400, wrong


async def test_open_views_are_those_of_the_customer_that_one_may_see_and_a_search_for_a_viewer_is_noted(
    desk: Desk,
) -> None:
    desk.came.beacons = [Read(1, key, b"", {}) for key in (b"acme:a", b"globex:g", b"globex-tv:t")]
    desk.views.answer = b'{"found":{"state":"open","row":{"view_id":"g","viewer_user_id":"x","events":[]}}}'
    assert (await desk.get("/v1/open-views?customer=acme", GLOBEX_VIEWER))[0] == 404
    found = await desk.json("/v1/open-views?customer=globex&viewer=x", GLOBEX_VIEWER)
    assert [(one["view_id"], one["viewer"], "events" in one) for one in found["views"]] == [("g", "x", False)]
    assert desk.views.asked == [("globex", "g")]
    assert desk.noted.noted == [("viewer@globex", "looked_at_viewer", "x")]
    some = '{"or": [{"dimension": "viewer", "contains": "a"}, {"dimension": "viewer", "in": ["x", "y"]}]}'
    await desk.json(f"/v1/open-views?customer=globex&viewer=x&filter={quote(some)}", GLOBEX_VIEWER)
    assert [target for _, _, target in desk.noted.noted[1:]] == ["x", "contains: a", "y"]
    assert (await desk.get("/v1/open-views?customer=globex", METRICS_TOKEN))[0] == 403
    # What cannot be noted is not shown.
    desk.noted.problem = PostgresAway("away")
    assert (await desk.get("/v1/open-views?customer=globex&viewer=x", GLOBEX_VIEWER))[0] == 503
    desk.noted.problem = TooManyRequests(2)
    assert (await desk.get("/v1/open-views?customer=globex&viewer=x", GLOBEX_VIEWER))[0] == 429
    # In words of those who look at views.
    for problem, status, title in (
        (LookupsAway("no"), 503, "Open views cannot be looked up now"),
        (LookupsRefused("no", 400), 502, "Open views cannot be looked up"),
    ):
        desk.views.answer = problem
        found_status, body = await desk.get("/v1/open-views?customer=globex", GLOBEX_VIEWER)
        assert (found_status, json.loads(body)["title"]) == (status, title)


async def test_only_who_runs_the_installation_sees_its_partitions(desk: Desk) -> None:
    desk.views.answer = b"{}"
    assert (await desk.get("/v1/partitions", OWNER))[0] == 200
    for who in (GLOBEX_ADMIN, GLOBEX_VIEWER, METRICS_TOKEN):
        assert (await desk.get("/v1/partitions", who))[0] == 404
        assert (await desk.get("/partitions", who))[0] == 404


async def test_a_token_opens_what_its_scopes_say(desk: Desk) -> None:
    desk.views.answer = b"{}"
    for who, path, status in (
        (METRICS_TOKEN, "/v1/live", 200),
        (METRICS_TOKEN, "/v1/limits?customer=globex", 404),
        (METRICS_TOKEN, "/v1/recordings?customer=globex&session=s", 403),
        (METRICS_TOKEN, "/v1/open-views?customer=globex", 403),
        (METRICS_TOKEN, "/v1/tokens", 403),
        (VIEWS_TOKEN, "/v1/live", 403),
        (VIEWS_TOKEN, "/v1/open-views?customer=globex", 200),
        (VIEWS_TOKEN, "/v1/open-views?customer=acme", 404),
    ):
        assert (await desk.get(path, who))[0] == status, path
    assert (await desk.get("/v1/audit", GLOBEX_VIEWER))[0] == 403


async def test_a_token_for_some_customers_has_no_business_with_the_organisation(desk: Desk) -> None:
    """Else it would invite an admin, whose link is in the answer, and see every customer."""
    of_the_team = {route: access for route, access in ROUTES.items() if access.whose == "team"}
    assert {path.split("/")[2] for _, path in of_the_team} == {
        *("people", "invitations", "tokens", "audit", "organisations"),
    }
    for (method, path), access in of_the_team.items():
        wanted = path.replace("{id}", "a")
        async with desk.client.request(method, wanted, headers=headers_of(TEAM_TOKEN), json={}) as answer:
            assert answer.status == 403, (method, path)
        if access != OWNERS:
            # The same rights without the limit come as far as the body, or Postgres, which is not there.
            async with desk.client.request(method, wanted, headers=headers_of(WHOLE_TOKEN), json={}) as answer:
                assert answer.status in {400, 503}, (method, path)


async def test_a_change_needs_the_sessions_own_csrf_token(desk: Desk) -> None:
    async def log_out(**headers: str) -> int:
        async with desk.client.post("/v1/logout", headers=headers_of(OWNER) | headers) as answer:
            return answer.status

    csrf = {"Playhead-CSRF": OWNER.csrf}
    assert await log_out() == 403
    assert await log_out(**{"Playhead-CSRF": GLOBEX_ADMIN.csrf}) == 403
    assert await log_out(**csrf, Origin="https://evil.example") == 403
    assert await log_out(**csrf, **{"Sec-Fetch-Site": "cross-site"}) == 403
    assert await log_out(**csrf, Origin="null") == 403
    # It comes as far as Postgres, which is not there.
    assert await log_out(**csrf) == 503
    assert (await desk.json("/v1/session", OWNER))["csrf"] == OWNER.csrf


async def test_a_login_from_another_origins_page_is_refused(desk: Desk) -> None:
    body = {"email": "a@b", "password": "a long enough one"}
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "same-site"}):
        async with desk.client.post("/v1/login", json=body, headers=headers) as answer:
            assert answer.status == 403
    # What a form can send without leave is not taken either.
    async with desk.client.post("/v1/login", data=body) as answer:
        assert answer.status == 400
    async with desk.client.post("/v1/login", json=body) as answer:
        assert (answer.status, (await answer.json())["type"]) == (503, "urn:playhead:problem:postgres-away")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "x@evil.example", "evil.example:80", "", "["]
)
async def test_a_foreign_host_is_refused(desk: Desk, host: str) -> None:
    for path in ("/login", "/v1/live", "/static/main.js", "/no-such"):
        assert (await desk.get(path, OWNER, Host=host))[0] in {400, 421}
    assert (await desk.get("/v1/live", OWNER, Host="localhost:8090"))[0] == 200
    assert (await desk.get("/v1/live", OWNER, Host="[::1]:8090"))[0] == 200


async def test_each_look_at_a_recording_is_noted_or_refused(desk: Desk) -> None:
    audit = desk.noted
    await desk.get("/v1/recordings?customer=globex&session=s", VIEWS_TOKEN)
    await desk.get("/v1/recordings/payload?customer=globex&session=s&number=1", VIEWS_TOKEN)
    await desk.get("/v1/recordings?customer=acme&session=s", GLOBEX_VIEWER)
    assert audit.noted == [
        ("a token", "looked_at_recording", "globex/s"),
        ("a token", "looked_at_recording", "globex/s"),
    ]
    audit.problem = PostgresAway("test")
    assert (await desk.get("/v1/recordings?customer=globex&session=s", GLOBEX_VIEWER))[0] == 503
    for problem in (TooManyRequests(2), TooManyQuestions()):
        audit.problem = problem
        assert (await desk.get("/v1/recordings?customer=globex&session=s", GLOBEX_VIEWER))[0] == 429


async def test_each_person_and_token_has_a_rate_of_requests(tmp_path: Path) -> None:
    desk = Desk(tmp_path, requests_per_second=0.5)
    await desk.client.start_server()
    for _ in range(2):
        assert (await desk.get("/v1/live", METRICS_TOKEN))[0] == 200
    async with desk.client.get("/v1/live", headers=headers_of(METRICS_TOKEN)) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "2")
        assert (await answer.json(content_type="application/problem+json"))["type"].endswith(":too-many-requests")
    # Nobody else pays for it, and what is refused for another reason counts as well.
    for _ in range(2):
        assert (await desk.get("/v1/open-views?customer=acme", GLOBEX_VIEWER))[0] == 404
    assert (await desk.get("/v1/open-views?customer=acme", GLOBEX_VIEWER))[0] == 429
    assert (await desk.get("/v1/live", OWNER))[0] == 200
    await desk.client.close()


async def test_the_many_callers_of_one_organisation_have_a_rate_together(tmp_path: Path) -> None:
    desk = Desk(tmp_path, requests_per_second=0.25)
    await desk.client.start_server()
    one = desk.known.people[METRICS_TOKEN]
    many = [credential(Kind.TOKEN, 100 + number) for number in range(3 * CALLERS_OF_ORGANISATION)]
    for number, token in enumerate(many):
        desk.known.people[token] = replace(one, id=f"token-{number}")
    found = [(await desk.get("/v1/live", token))[0] for token in many]
    assert found[:CALLERS_OF_ORGANISATION] == [200] * CALLERS_OF_ORGANISATION
    assert 429 in found
    assert (await desk.get("/v1/live", OWNER))[0] == 200
    await desk.client.close()
