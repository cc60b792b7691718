"""Requests of every route: well-formed ones of simulated viewers, services and pages, with strange values in them."""

from collections.abc import Callable
from random import Random
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from services.collector.intake import epas, native
from services.collector.intake.api_calls import api_calls
from services.collector.intake.cmcd import cmcd
from services.collector.intake.mux import mux
from services.collector.intake.otlp import otlp
from services.collector.intake.post import ParsedBody, Post, Rules
from tests.fuzz.values import STRANGE, mutated
from tests.oracle.rows.requests import Request
from tests.oracle.sessions import cmcd_client, json_clients, mux_client
from tests.oracle.sessions.viewer import CLIENTS, Session, session

#: Few keys, so that hostile requests meet what earlier ones left behind.
KEYS: Final = 6
_Parse = Callable[[Post, Rules], ParsedBody]


def _parse_epas(post: Post, rules: Rules) -> ParsedBody:
    return epas.parse_event(post, rules, "new").parsed


def _parse_pixel(post: Post, rules: Rules) -> ParsedBody:
    query = parse_qsl(post.body.decode("utf-8", "surrogateescape"), keep_blank_values=True)
    return native.parse_query(query, post, rules)


PARSERS: Final[dict[str, _Parse]] = {
    "mux": mux.parse_beacons,
    "cmcd": cmcd.parse_records,
    "epas": _parse_epas,
    "native": native.parse_beacons,
    "pixel": _parse_pixel,
    "otlp": otlp.parse_spans,
    "otlp-protobuf": otlp.parse_spans,
    "api-calls": api_calls.parse_calls,
}
_CLIENTS: Final[dict[str, Callable[[Session], list[Request]]]] = {
    "mux": mux_client.requests,
    "cmcd": cmcd_client.requests,
    "epas": json_clients.epas_requests,
    "native": json_clients.native_requests,
}
_NUMBERS: Final = {
    "mux": ("mux",),
    "cmcd": ("hls.js", "dash.js", "shaka", "reporter"),
    "epas": ("epas",),
    "native": ("native", "native-unnumbered"),
}


def body(rng: Random, route: str, clock_ms: int) -> bytes:
    """A body for a route, sent at `clock_ms`."""
    times = rng.choice((0, 1, 1, 2, 4, 12))
    match route:
        case "pixel":
            fields = {"view_id": view_id(rng, route), "event": "playing", "time_ms": 1_790_000_000_000, "cdn": "a"}
            return urlencode({key: str(value) for key, value in _object(mutated(rng, fields, times)).items()}).encode()
        case "otlp":
            return dumped(mutated(rng, _spans(rng, clock_ms), times))
        case "otlp-protobuf":
            return _protobuf(rng, clock_ms, times)
        case "api-calls":
            return dumped(mutated(rng, {"calls": [_call(rng, clock_ms) for _ in range(rng.choice((1, 1, 3)))]}, times))
        case "cmcd":
            return _cmcd(rng, times)
        case _:
            return dumped(mutated(rng, _rekeyed(rng, route, orjson.loads(_request(rng, route).body)), times))


def dumped(document: Any) -> bytes:
    """The document as JSON; whole numbers of any size."""
    try:
        return orjson.dumps(document)
    except TypeError:
        return str(document).encode()


def _object(document: Any) -> dict[str, Any]:
    return document if isinstance(document, dict) else {"a": document}


def _request(rng: Random, route: str) -> Request:
    """Some request of a simulated viewer."""
    while True:
        number = rng.randrange(500)
        if CLIENTS[number % len(CLIENTS)] not in _NUMBERS[route]:
            continue
        found = _CLIENTS[route](session(3, number))
        if found:
            return rng.choice(found)


def _rekeyed(rng: Random, route: str, document: Any) -> Any:
    """The document with its views' ids among few."""
    inner = document.get("events") or document.get("beacons") or [document]
    for one in inner:
        for name in ("xid", "view_id", "sessionId"):
            if name in one:
                one[name] = view_id(rng, route)
    return document


def view_id(rng: Random, route: str) -> str:
    """One of few; now and then one of another kind of client, or a new one."""
    kind = rng.choice((*_NUMBERS, "pixel")) if rng.random() < 0.02 else route
    if rng.random() < 0.01:
        return f"{kind}-{rng.randrange(KEYS)}\0{rng.randrange(3)}"
    return f"{kind}-{rng.randrange(KEYS if rng.random() < 0.9 else 10**9)}"


def _cmcd(rng: Random, times: int) -> bytes:
    lines = []
    for line in _request(rng, "cmcd").body.decode().split("\n"):
        pairs = [pair.partition("=") for pair in line.split(",") if not pair.startswith("sid=")]
        record = {name: value for name, _, value in pairs} | {"sid": f'"{view_id(rng, "cmcd")}"'}
        for _ in range(times):
            name = rng.choice([*record, "msd", "bsd", "bsa", "bsda", "dfa", "pt", "ltc", "ttlb", "cen", "com.a-x"])
            record[name] = _item(rng)
        lines.append(",".join(f"{name}={value}" if value else name for name, value in record.items()))
    return "\n".join(lines).encode("utf-8", "replace")


def _item(rng: Random) -> str:
    """A value as a structured dictionary writes it, or nearly."""
    value = rng.choice(STRANGE)
    match value:
        case bool() | None:
            return rng.choice(("", "?0", "?1"))
        case int() | float():
            return str(value)
        case str():
            return rng.choice((f'"{value[:300]}"', value[:40], f"({value[:40]})", f'("{value[:40]}";v)'))
        case _:
            return rng.choice(
                ("()", "(1 2 3)", "(1;v -2;a)", '("a" 1.5;v)', "(" + "1 " * 200 + ")", "-999999999999999")
            )


def _spans(rng: Random, clock_ms: int) -> dict[str, Any]:
    start = (clock_ms - rng.randrange(10_000)) * 1_000_000
    spans = [
        {
            "traceId": f"{rng.randrange(1, KEYS + 1):032x}",
            "spanId": f"{rng.randrange(1, 60):016x}",
            "parentSpanId": rng.choice(("", f"{rng.randrange(1, 60):016x}")),
            "name": "GET /users",
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start + rng.randrange(10**9)),
            "kind": rng.randrange(6),
            "attributes": [
                {"key": "http.request.method", "value": {"stringValue": "GET"}},
                {
                    "key": "url.full",
                    "value": {"stringValue": f"https://api{rng.randrange(3)}.example/users/{rng.randrange(9)}"},
                },
                {"key": "http.response.status_code", "value": {"intValue": "200"}},
                {"key": "http.response.body", "value": {"stringValue": '{"id": 1, "names": ["a"]}'}},
            ],
            "events": [{"timeUnixNano": str(start), "name": "e"}],
            "status": {"code": rng.randrange(3)},
        }
        for _ in range(rng.choice((1, 1, 2, 8)))
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}


def _protobuf(rng: Random, clock_ms: int, times: int) -> bytes:
    """Spans in the other encoding: strange values where the encoding has a place for them, then strange bytes."""
    request = ExportTraceServiceRequest()
    for group in _spans(rng, clock_ms)["resourceSpans"]:
        spans = request.resource_spans.add().scope_spans.add().spans
        for one in group["scopeSpans"][0]["spans"]:
            span = spans.add(trace_id=bytes.fromhex(one["traceId"]), span_id=bytes.fromhex(one["spanId"]), name="GET")
            span.start_time_unix_nano = rng.choice((int(one["startTimeUnixNano"]), 0, 2**64 - 1, 1))
            span.end_time_unix_nano = int(one["endTimeUnixNano"])
            span.kind, span.status.code = rng.choice((one["kind"], -1, 2**31 - 1)), rng.choice((0, 2, -(2**31)))
            for attribute in one["attributes"]:
                value = span.attributes.add(key=attribute["key"]).value
                value.string_value = str(
                    rng.choice((attribute["value"].get("stringValue", "200"), rng.choice(STRANGE)))
                )
                if rng.random() < 0.1:
                    _nest(rng, value)
    data = bytearray(request.SerializeToString())
    for _ in range(rng.choice((0, 0, times))):
        place = rng.randrange(len(data))
        data[place : place + rng.choice((0, 1, 1, 4))] = rng.randbytes(rng.choice((0, 1, 1, 9)))
    return bytes(data)


def _nest(rng: Random, value: Any) -> None:
    for _ in range(rng.choice((1, 9, 40))):
        value = value.array_value.values.add()
    value.double_value = rng.choice((float("nan"), float("inf"), -0.0, 1e308))


def _call(rng: Random, clock_ms: int) -> dict[str, Any]:
    return {
        "method": "POST",
        "host": f"api{rng.randrange(3)}.example",
        "path": f"/users/{rng.choice(('1', '2', 'me', 'a' * 40))}/{rng.choice(('orders', 'x?y=1', str(rng.randrange(9**9))))}",
        "status": rng.choice((200, 201, 404, 500)),
        "time_ms": clock_ms - rng.randrange(60_000),
        "duration_us": rng.randrange(10**6),
        "request": {
            "headers": {"accept": "x"},
            "body": {"name": "a", "tags": ["x", "y"], "when": "2026-01-01T00:00:00Z"},
        },
        "response": {"body": {"id": rng.randrange(99), "items": [{"a": 1}, {"a": None, "b": 2.5}]}},
    }
