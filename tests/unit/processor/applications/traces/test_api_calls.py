"""Server spans of HTTP become API calls, once each, to the partition of the API."""

from collections.abc import Callable
from typing import Any

import pytest

from services.processor.applications.traces.api_call import to_api_call
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import codec, topics
from tests.unit.processor.applications.traces.spans import APPLICATION, T0, pipe, span

STABLE: dict[str, Any] = {
    "http.request.method": "GET",
    "http.response.status_code": 200,
    "server.address": "API.example",
    "server.port": 8443,
    "url.path": "/users/7",
}
OLD: dict[str, Any] = {
    "http.method": "POST",
    "http.status_code": 201,
    "http.host": "api.example",
    "http.target": "/users/7?a=b",
}


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        (STABLE, ("GET", "api.example:8443", ["users", "{integer}"], 200)),
        (STABLE | {"http.route": "/users/:name"}, ("GET", "api.example:8443", ["users", "{route}"], 200)),
        (STABLE | {"server.port": 443}, ("GET", "api.example", ["users", "{integer}"], 200)),
        (OLD, ("POST", "api.example", ["users", "{integer}"], 201)),
        ({"http.method": "GET", "http.status_code": 200, "http.url": "http://x/a"}, ("GET", "shop", ["a"], 200)),
        ({"http.method": "GET", "http.url": "http://x/a"}, None),
        ({"http.method": "GET", "http.status_code": True, "http.url": "http://x/a"}, None),
        ({"rpc.system": "grpc"}, None),
        # `urlsplit` raises on these.
        (
            {"http.request.method": "GET", "http.response.status_code": 200, "url.full": "http://["},
            None,
        ),
        ({"http.method": "GET", "http.status_code": 200, "http.url": "http://[::1"}, None),
        ({"http.method": "GET", "http.status_code": 200, "http.url": "//\u2100/a"}, None),
    ],
)
def test_the_call_of_a_span(attrs: dict[str, Any], expected: tuple[Any, ...] | None) -> None:
    call = to_api_call(span("a", 0, 5, kind="server", attrs=attrs))
    assert (call and (call.method, call.host, call.path, call.status)) == expected
    assert to_api_call(span("a", 0, 5, kind="client", attrs=attrs)) is None


def test_each_server_span_is_one_call(drive: Callable[[Application], Driver]) -> None:
    driver = drive(APPLICATION)
    server = span("a", 0, 5, kind="server", attrs=STABLE)
    pipe(driver, server, span("b", 1, 4, "a"), server)
    (output,) = driver.outputs(topics.API_CALLS)
    call = codec.API_CALL.decode(output.value)
    assert (output.key, output.by_key) == (b"acme:api.example:8443", True)
    assert (call.customer_id, call.at_ms, call.duration_us, call.source) == ("acme", T0, 5_000, "span")
