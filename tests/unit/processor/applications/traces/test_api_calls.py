"""Server spans of HTTP become API calls, once each, to the partition of the API."""

from collections.abc import Callable
from typing import Any

import pytest

from services.processor.applications.traces import app
from services.processor.applications.traces.api_call import to_api_call
from services.processor.applications.traces.settings import TraceRules
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import codec, topics
from tests.unit.processor.applications.traces.spans import APPLICATION, T0, pass_time, pipe, rows, span

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


def small(*, spans_max: int) -> Application:
    return app.application(TraceRules(gap_ms=1_000, grace_ms=5_000, kept_ms=1_000, spans_max=spans_max))


def test_server_spans_without_room_in_their_trace_are_one_call_each_too(
    drive: Callable[[Application], Driver],
) -> None:
    driver = drive(small(spans_max=3))
    servers = [span(name, 0, 5, kind="server", attrs=STABLE) for name in "abcdefghij"]
    pipe(driver, *servers, *servers)
    assert len(driver.outputs(topics.API_CALLS)) == 10
    pass_time(driver, 10_000)
    assert [row.span_count for row in rows(driver)] == [3]
    assert driver.rows["called_spans"] == 0


def test_a_call_is_emitted_once_though_its_span_finds_room_when_it_comes_again(
    drive: Callable[[Application], Driver],
) -> None:
    driver = drive(small(spans_max=2))
    server = span("c", 4_100, 5_100, kind="server", attrs=STABLE)
    pipe(driver, span("a", 0, 5), span("b", 4_000, 5_000), server)
    # The part of the first is kept no longer.
    pass_time(driver, 8_000)
    pipe(driver, server, server, at_ms=8_000)
    pass_time(driver, 12_000)
    assert [row.span_count for row in rows(driver)] == [1, 1, 2]
    assert len(driver.outputs(topics.API_CALLS)) == 1


def test_calls_beyond_the_bound_of_a_trace_are_dropped_and_counted(
    drive: Callable[[Application], Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "CALLED_MAX", 2)
    driver = drive(small(spans_max=1))
    pipe(driver, *(span(name, 0, 5, kind="server", attrs=STABLE) for name in "abcde"))
    assert (len(driver.outputs(topics.API_CALLS)), driver.tallies["calls_dropped"]) == (3, 2)
