"""Every route of every service: who may use it is said here, or where the guard reads it. A new application or route fails this."""

import asyncio
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from deploy.local.ports import free_port
from services.collector.http import app as collector
from services.collector.http.finishing import Drain
from services.dashboard import app as dashboard
from services.processor.catalogue import APPLICATIONS
from services.processor.runtime.http.hops import PROXIED
from services.processor.runtime.http.queries import HOP_PATH
from services.processor.runtime.http.routes import RequestLimits
from services.processor.runtime.http.server import LookupServer
from services.query.http import app as query
from services.rim.admin.admin import AdminServer, Check
from services.rim.admin.guarded_runner import SERVER_NAME, GuardedRunner
from services.rim.admin.probe import PORTS
from services.rim.http.credentials import OF_CUSTOMERS, SCOPES, entry
from shared.settings import Settings
from tests.unit.processor.runtime.http.stand_ins import SLOTS_TOKEN, TOKEN, Group, Here, endpoint

SERVICES = Path(__file__).parents[2] / "services"
#: Every module that makes an HTTP application, and who says there who may use its routes.
APPS = {
    # Each route has an access, or the application is not made; the guard compares the customer.
    "dashboard/app.py": "guard",
    "query/http/app.py": "guard",
    # Players write, with a write key; nothing that anybody has sent can be read.
    "collector/http/app.py": "write key",
    # Other services read, with a credential of theirs.
    "processor/runtime/http/server.py": "credential",
    # Health says yes or no; metrics want the admin token.
    "rim/admin/admin.py": "admin token",
}
#: Of the collector, what can be read: it says nothing of anybody.
READ_OF_COLLECTOR = {"/", "/favicon.ico", "/v1/beacons/schema.json", "/v1/api-calls/schema.json"}
OPERATORS = {("GET", "/partitions"), ("GET", "/quarantine"), ("POST", "/quarantine/release")}
#: The users of the installation: they belong to no customer.
USERS = {
    *(("GET", path) for path in ("/users", "/users/{id}", "/openapi.json")),
    *(("POST", path) for path in ("/users", HOP_PATH)),
    *((method, "/users/{id}") for method in ("PUT", "PATCH", "DELETE")),
}


def routes_of(app: web.Application) -> set[tuple[str, str]]:
    """Method and path of each."""
    return {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }


def test_every_module_that_makes_an_http_application_is_known() -> None:
    found = {
        str(path.relative_to(SERVICES))
        for path in SERVICES.rglob("*.py")
        if "web.Application(" in path.read_text() or "web.RouteTableDef(" in path.read_text()
    }
    assert found == APPS.keys()
    for path, who in APPS.items():
        if who == "guard":
            text = (SERVICES / path).read_text()
            assert "app.middlewares.append(guard.answer)" in text
            assert "routing.check()" in text
            # No route is added past the routing.
            assert "app.router" not in text


def server_of(name: Any, port: int, *entries: str) -> LookupServer:
    return LookupServer(
        APPLICATIONS[name]({}),
        endpoint(port, *entries),
        slot="test/0",
        ownership=Group(f"http://127.0.0.1:{port}", "me"),  # type: ignore[arg-type]
        replica=Here(),  # type: ignore[arg-type]
        settings=Settings(kafka_bootstrap="127.0.0.1:1"),
        requests=RequestLimits(seconds_max=0.1),
    )


@pytest.mark.parametrize("name", APPLICATIONS)
async def test_each_lookup_names_a_customer_and_each_route_of_a_slot_wants_a_bearer_token(name: Any) -> None:
    application, port = APPLICATIONS[name]({}), free_port()
    lookups = {("GET", re.sub(r"{(\w+):.*}", r"{\1}", lookup.path)) for lookup in application.lookups}
    for lookup in application.lookups:
        assert "{customer}" in lookup.path or "customer" in lookup.parameters, lookup.path
    server = server_of(name, port)
    routes = routes_of(server._app())
    assert routes == lookups | OPERATORS | (USERS if name == "users" else set())
    server.start()
    try:
        async with aiohttp.ClientSession() as client:
            for method, path in routes:
                for header in (None, f"Basic {TOKEN}", "Bearer another token of sixteen", TOKEN):
                    headers = {} if header is None else {"Authorization": header}
                    url = f"http://127.0.0.1:{port}{path.replace('{', '').replace('}', '')}"
                    async with client.request(method, url, headers=headers) as answer:
                        assert answer.status == 401, (method, path, header)
    finally:
        await asyncio.to_thread(server.stop)


def scopes_of(name: Any, routes: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What each route of a slot wants; said here once more, so that a change of it is seen."""
    objects = {
        re.sub(r"{(\w+):.*}", r"{\1}", one.path) for one in APPLICATIONS[name]({}).lookups if one.objects_of is not None
    }
    wanted = {}
    for method, path in routes:
        if (method, path) in OPERATORS:
            wanted[method, path] = "partitions" if path == "/partitions" else "operators"
        elif path == HOP_PATH:
            wanted[method, path] = "slots"
        elif name == "users" and (method, path) in USERS:
            wanted[method, path] = "read" if method == "GET" else "write"
        else:
            wanted[method, path] = "objects" if path in objects else "lookups"
    return wanted


@pytest.mark.parametrize("name", APPLICATIONS)
async def test_each_route_of_a_slot_wants_its_scope_and_reads_no_other_customer(name: Any) -> None:
    port = free_port()
    alone = {scope: f"a token with scope {scope} alone" for scope in SCOPES}
    entries = [entry(f"of-{scope}", [scope], token) for scope, token in alone.items()]
    of_a = "a token of customer a alone"
    server = server_of(name, port, *entries, entry("of-a", ["lookups", "objects"], of_a, ["a"]))
    wanted = scopes_of(name, routes_of(server._app()))
    server.start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:

            async def status(method: str, path: str, token: str, *, customer: str = "a", **headers: str) -> int:
                in_path = "{customer}" in path
                path = re.sub(r"{\w+}", "x", path.replace("{customer}", customer).replace("{number}", "0"))
                given = {"Authorization": f"Bearer {token}", **headers}
                parameters = [] if in_path else [("customer", customer)]
                async with client.request(method, path, params=parameters, headers=given) as answer:
                    return answer.status

            for (method, path), scope in wanted.items():
                for each, token in alone.items():
                    assert (await status(method, path, token) == 403) == (each != scope), (method, path, each)
                # What another slot passes on is of slots alone.
                passed_on = {PROXIED: "test/9"}
                assert await status(method, path, alone[scope], **passed_on) == (403 if scope != "slots" else 400)
                assert await status(method, path, SLOTS_TOKEN, **passed_on) != 403
                if scope in OF_CUSTOMERS:
                    # 503: it is asked, and no partition is here.
                    assert await status(method, path, of_a) in {400, 503}, path
                    assert await status(method, path, of_a, customer="b") == 404, path
                    assert await status(method, f"{path}?customer=b", of_a, customer="a") == 404, path
                else:
                    assert await status(method, path, of_a) == 403, path
    finally:
        await asyncio.to_thread(server.stop)


def well() -> Check:
    return Check(True, "")


class Nothing:
    """Has every handler."""

    def __getattr__(self, name: str) -> Any:
        async def handle(_: web.Request) -> web.Response:
            return web.Response()

        return handle


def test_nothing_that_anybody_has_sent_can_be_read_at_a_collector() -> None:
    app = collector.make_app(Nothing(), Nothing(), Drain())  # type: ignore[arg-type]
    reads = {path for method, path in routes_of(app) if method not in {"POST", "OPTIONS"}}
    # The pixel sends a beacon; the last answers that nothing is here.
    assert reads == READ_OF_COLLECTOR | {"/v1/beacons.gif", "/{path}"}


async def test_of_the_admin_port_only_health_is_open() -> None:
    production = Settings(topics_profile="production")
    server = AdminServer("127.0.0.1", free_port(), production, is_alive=well, is_ready=well)
    app = server._app()
    assert routes_of(app) == {("GET", "/livez"), ("GET", "/readyz"), ("GET", "/metrics")}
    async with TestClient(TestServer(app)) as client:
        answers = {path: (await client.get(path)).status for _, path in routes_of(app)}
    assert answers == {"/livez": 200, "/readyz": 200, "/metrics": 401}


def test_every_service_gives_its_settings_to_its_admin_port() -> None:
    # The processor's entry chooses a build and then imports its program; the dashboard's parts are put together in its assembly.
    mains = {
        path.parent.name: path.read_text()
        for name in ("__main__", "program", "assembly")
        for path in SERVICES.glob(f"*/{name}.py")
    }
    assert mains.keys() == PORTS.keys()
    for service, text in mains.items():
        assert re.search(r"AdminServer\(\s*settings\.admin_host,\s*settings\.admin_port,\s*settings,", text), service


def runners(app: web.Application) -> dict[str, web.AppRunner]:
    """What listens: of each service that has a port of its own; HttpThread's is the first."""
    return {
        "lookups and admin": GuardedRunner(app),
        "collector": collector.make_runner(app, 1),
        "dashboard": dashboard.make_runner(app, 1),
        "query": query.make_runner(app, 1),
    }


def test_every_listener_is_made_in_one_place() -> None:
    makers = re.compile(r"web\.(AppRunner|ServerRunner|run_app|Server)\(")
    assert not [path for path in SERVICES.rglob("*.py") if makers.search(path.read_text())]


@pytest.mark.parametrize("name", runners(web.Application()))
@pytest.mark.parametrize("path", ["/", "/nothing", "*"])
async def test_no_answer_says_which_versions_run(name: str, path: str) -> None:
    runner = runners(web.Application())[name]
    await runner.setup()
    port = free_port()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        for request in (f"GET {path} HTTP/1.1\r\nHost: x\r\n", "no HTTP\r\n", "GET / HTTP/9.9\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"{request}Connection: close\r\n\r\n".encode())
            head = (await reader.read()).decode().lower()
            writer.close()
            assert re.findall(r"^server: (.*)\r$", head, re.MULTILINE) == [SERVER_NAME.lower()], head
            assert "python/" not in head
            assert "aiohttp/" not in head
    finally:
        await runner.cleanup()
