"""OTLP/HTTP: both encodings are read alike, invalid spans are reported as the specification wants, and SDKs post as they are."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from services.collector.intake.otlp import otlp
from services.collector.intake.post import ParsedBody, Rules
from services.collector.intake.sender.customers import Customer, Customers
from shared.codec import SPAN
from shared.partitioning import partition_of, trace_key
from shared.schemas.span import Span
from shared.topics import PROFILES, SPANS
from tests.unit.collector.http.serving import RULES, Served
from tests.unit.collector.intake.bodies import RECV_TIME_MS, post

TRACE_ID, SPAN_ID, PARENT_ID = "5B8EFFF798038103D269B633813FC60C", "EEE19B7EC3C1B174", "EEE19B7EC3C1B173"
NS = 1_000_000_000
#: One span as OTLP's JSON has it, with a value of every kind.
SPAN_JSON: dict[str, Any] = {
    "traceId": TRACE_ID,
    "spanId": SPAN_ID,
    "parentSpanId": PARENT_ID,
    "name": "I'm a server span",
    "startTimeUnixNano": "1544712660000000123",
    "endTimeUnixNano": "1544712661000000999",
    "kind": 2,
    "attributes": [
        {"key": "text", "value": {"stringValue": "some value"}},
        {"key": "flag", "value": {"boolValue": False}},
        {"key": "whole", "value": {"intValue": "-5"}},
        {"key": "half", "value": {"doubleValue": 0.5}},
        {"key": "list", "value": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "x"}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}}},
        {"key": "bytes", "value": {"bytesValue": "/wA="}},
        {"key": "nothing", "value": {}},
    ],
    "events": [
        {"timeUnixNano": "1544712660500000000", "name": "e", "attributes": [{"key": "a", "value": {"intValue": "1"}}]}
    ],
    "links": [{"traceId": "1" * 32, "spanId": "2" * 16}],
    "status": {"code": 2, "message": "boom"},
    "flags": 257,
    "unheardOf": {"x": 1},
}


def span_json(**changed: Any) -> dict[str, Any]:
    return SPAN_JSON | changed


def request_json(*spans: Any, resource: dict[str, Any] | None = None) -> dict[str, Any]:
    attributes = [
        {"key": "service.name", "value": {"stringValue": "my.service"}},
        {"key": "host.name", "value": {"stringValue": "h-1"}},
    ]
    scope_spans = [{"scope": {"name": "my.library", "version": "1"}, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": resource or {"attributes": attributes}, "scopeSpans": scope_spans}]}


def as_protobuf(document: dict[str, Any]) -> bytes:
    """The same request as protobuf; ids as OTLP's JSON has them."""
    request = ExportTraceServiceRequest()
    for resource_spans in document["resourceSpans"]:
        into = request.resource_spans.add()
        _attributes(into.resource.attributes, resource_spans["resource"].get("attributes", []))
        for scope_spans in resource_spans["scopeSpans"]:
            scope = into.scope_spans.add()
            scope.scope.name = scope_spans["scope"]["name"]
            for fields in scope_spans["spans"]:
                span = scope.spans.add()
                span.trace_id, span.span_id = bytes.fromhex(fields["traceId"]), bytes.fromhex(fields["spanId"])
                span.parent_span_id = bytes.fromhex(fields["parentSpanId"])
                span.name, span.kind = fields["name"], fields["kind"]
                span.start_time_unix_nano = int(fields["startTimeUnixNano"])
                span.end_time_unix_nano = int(fields["endTimeUnixNano"])
                _attributes(span.attributes, fields["attributes"])
                for event in fields["events"]:
                    added = span.events.add(time_unix_nano=int(event["timeUnixNano"]), name=event["name"])
                    _attributes(added.attributes, event["attributes"])
                for link in fields["links"]:
                    span.links.add(trace_id=bytes.fromhex(link["traceId"]), span_id=bytes.fromhex(link["spanId"]))
                span.status.code, span.status.message = fields["status"]["code"], fields["status"]["message"]
    return request.SerializeToString()


def _attributes(into: Any, attributes: list[dict[str, Any]]) -> None:
    for attribute in attributes:
        _value(into.add(key=attribute["key"]).value, attribute["value"])


def _value(into: Any, value: dict[str, Any]) -> None:
    for kind, content in value.items():
        match kind:
            case "stringValue":
                into.string_value = content
            case "boolValue":
                into.bool_value = content
            case "intValue":
                into.int_value = int(content)
            case "doubleValue":
                into.double_value = content
            case "arrayValue":
                for one in content["values"]:
                    _value(into.array_value.values.add(), one)
            case "kvlistValue":
                _attributes(into.kvlist_value.values, content["values"])
            case "bytesValue":
                into.bytes_value = b"\xff\x00"


def parse(body: Any, content_type: str = otlp.JSON, rules: Rules = RULES, **fields: Any) -> ParsedBody:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return otlp.parse_spans(post(data, content_type=content_type, **{"key": "acme"} | fields), rules)


EXPECTED = Span(
    schema_version=1,
    customer_id="acme",
    trace_id=TRACE_ID.lower(),
    span_id=SPAN_ID.lower(),
    parent_span_id=PARENT_ID.lower(),
    name="I'm a server span",
    kind="server",
    service="my.service",
    start_us=1_544_712_660_000_000,
    duration_us=1_000_000,
    status="error",
    status_message="boom",
    attrs={
        "text": "some value",
        "flag": False,
        "whole": -5,
        "half": 0.5,
        "list": [1, "x"],
        "map": {"k": True},
        "bytes": "ff00",
        "nothing": None,
    },
    resource={"host.name": "h-1"},
    scope="my.library",
    events=[{"at_us": 1_544_712_660_500_000, "name": "e", "attrs": {"a": 1}}],  # type: ignore[list-item]
    links=[{"trace_id": "1" * 32, "span_id": "2" * 16}],  # type: ignore[list-item]
    recv_time_ms=RECV_TIME_MS,
    collector_id="c-1",
    batch_id="b-1",
)


@pytest.mark.parametrize("content_type", [otlp.JSON, f"{otlp.JSON}; charset=utf-8", otlp.PROTOBUF])
@pytest.mark.parametrize("is_packed", [False, True])
def test_both_encodings_are_read_alike(content_type: str, is_packed: bool) -> None:
    document = request_json(span_json())
    body = as_protobuf(document) if content_type == otlp.PROTOBUF else json.dumps(document).encode()
    encoding = "gzip" if is_packed else ""
    parsed = parse(gzip.compress(body) if is_packed else body, content_type, content_encoding=encoding)
    assert parsed.rejected == []
    assert SPAN.encode(parsed.accepted[0]) == SPAN.encode(EXPECTED)


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({"parentSpanId": ""}, {"parent_span_id": None}),
        ({"parentSpanId": "0" * 16}, {"parent_span_id": None}),
        ({"endTimeUnixNano": "1"}, {"duration_us": 0}),
        ({"startTimeUnixNano": 1544712660000000123}, {"start_us": 1_544_712_660_000_000}),
        ({"kind": 99, "status": {}}, {"kind": "unspecified", "status": "unset"}),
        ({"status": None, "events": None, "attributes": None}, {"status": "unset", "attrs": {}}),
        ({"links": [{"traceId": "", "spanId": "1"}]}, {"links": []}),
        ({"attributes": [{"key": "n", "value": {"doubleValue": "NaN"}}]}, {"attrs": {"n": "NaN"}}),
        ({"name": "x" * 5_000}, {"name": "x" * 1_000}),
    ],
)
def test_what_is_allowed_is_read(changed: dict[str, Any], fields: dict[str, Any]) -> None:
    (span,) = parse(request_json(span_json(**changed))).accepted
    assert {name: getattr(span, name) for name in fields} == fields


def test_what_json_has_no_number_for_is_kept_as_text() -> None:
    document = request_json(span_json(attributes=[{"key": "n", "value": {"doubleValue": float("nan")}}]))
    assert parse(as_protobuf(document), otlp.PROTOBUF).accepted[0].attrs == {"n": "nan"}


def test_each_bad_span_is_rejected_with_its_place_and_the_others_are_kept() -> None:
    deep: Any = {"stringValue": "x"}
    for _ in range(12):
        deep = {"arrayValue": {"values": [deep]}}
    bad = [
        span_json(traceId="0" * 32),
        span_json(spanId="xyz"),
        span_json(parentSpanId="12"),
        span_json(startTimeUnixNano="soon"),
        span_json(endTimeUnixNano="9" * 30),
        span_json(kind="SPAN_KIND_SERVER"),
        span_json(attributes=[{"key": "n", "value": {"intValue": str(2**70)}}]),
        span_json(attributes=[{"key": "n", "value": {"bytesValue": "?"}}]),
        span_json(attributes=[{"key": "deep", "value": deep}]),
        span_json(attributes=[{"key": f"a{n}", "value": {"boolValue": True}} for n in range(1_001)]),
        7,
    ]
    parsed = parse(request_json(span_json(), *bad, span_json()), rules=Rules())
    assert len(parsed.accepted) == 2
    assert [rejected.place for rejected in parsed.rejected] == list(range(1, len(bad) + 1))
    assert [json.loads(rejected.value) for rejected in parsed.rejected] == bad
    assert {rejected.reason for rejected in parsed.rejected} == {"invalid", "too_large"}


@pytest.mark.parametrize(
    ("body", "content_type", "fields", "reason"),
    [
        (b"{", otlp.JSON, {}, "undecodable"),
        (b"[]", otlp.JSON, {}, "invalid"),
        (b"\xff", otlp.JSON, {}, "undecodable"),
        (b"\xff\xff", otlp.PROTOBUF, {}, "undecodable"),
        (b"{}", "text/plain", {}, "undecodable"),
        (b"x" * 20_000, otlp.JSON, {}, "too_large"),
        (json.dumps(request_json(*[{}] * 11)).encode(), otlp.JSON, {}, "too_large"),
        (b'{"resourceSpans":[{"scopeSpans":[%s{}]}]}' % (b"{}," * 10), otlp.JSON, {}, "too_large"),
        (b'{"resourceSpans":[%s{}]}' % (b"{}," * 10), otlp.JSON, {}, "too_large"),
        (b"\x0a\x00" * 11, otlp.PROTOBUF, {}, "too_large"),
        (b"\x0a\x16" + b"\x12\x00" * 11, otlp.PROTOBUF, {}, "too_large"),
        (b"\x0a\x18\x12\x16" + b"\x12\x00" * 11, otlp.PROTOBUF, {}, "too_large"),
        (b"{}", otlp.JSON, {"key": "a b"}, "invalid"),
        (b"{}", otlp.JSON, {"content_encoding": "snappy"}, "undecodable"),
    ],
)
def test_a_body_that_is_no_request_is_rejected_as_a_whole(
    body: bytes, content_type: str, fields: dict[str, Any], reason: str
) -> None:
    parsed = parse(body, content_type, RULES.model_copy(update={"batch_spans_max": 10}), **fields)
    assert [(rejected.reason, rejected.place, rejected.value) for rejected in parsed.rejected] == [(reason, None, body)]


def test_without_a_key_spans_are_the_default_customers_where_any_key_will_do() -> None:
    body = request_json(span_json())
    assert parse(body, key="").accepted[0].customer_id == "default"
    listed = RULES.model_copy(update={"customers": Customers({"acme": Customer()})})
    assert parse(body, key="", rules=listed).rejected[0].reason == "unknown_customer"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SPAN_JSON, "key", "value"]), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(list(SPAN_JSON)), json_values, max_size=4))
def test_any_field_may_be_anything(changed: dict[str, Any]) -> None:
    parsed = parse(request_json(span_json(**changed)), rules=Rules())
    assert len(parsed.accepted) + len(parsed.rejected) == 1
    for span in parsed.accepted:
        assert SPAN.decode(SPAN.encode(span)).span_id == SPAN_ID.lower()


@given(st.binary(max_size=200), st.sampled_from([otlp.JSON, otlp.PROTOBUF]))
def test_any_bytes_are_stored_or_rejected(body: bytes, content_type: str) -> None:
    assert all(rejected.value for rejected in parse(body, content_type).rejected) or not body


WHOLE = as_protobuf(request_json(span_json(), span_json(name="b")))


@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=4), st.integers(0, 4))
def test_protobuf_with_bytes_changed_is_stored_or_rejected(at: int, put: bytes, gone: int) -> None:
    parsed = parse(WHOLE[:at] + put + WHOLE[at + gone :], otlp.PROTOBUF)
    for span in parsed.accepted:
        assert SPAN.decode(SPAN.encode(span)) is not None


async def sent(served: Served, body: bytes, content_type: str, **headers: str) -> tuple[int, bytes, str, Any]:
    async with served.client.post(
        "/v1/traces?key=acme", data=body, headers={"Content-Type": content_type} | headers
    ) as answer:
        return answer.status, await answer.read(), answer.content_type, answer.headers


async def test_spans_are_stored_by_trace_and_answered_in_their_encoding(served: Served) -> None:
    document = request_json(span_json())
    assert (await sent(served, as_protobuf(document), otlp.PROTOBUF))[:3] == (200, b"", otlp.PROTOBUF)
    assert (await sent(served, json.dumps(document).encode(), otlp.JSON))[:3] == (200, b"{}", otlp.JSON)
    assert (await sent(served, b"", otlp.PROTOBUF))[:2] == (200, b"")
    key = trace_key("acme", TRACE_ID.lower())
    partition = partition_of(key, SPANS.partitions(PROFILES["laptop"]))
    assert [(r.topic, r.key, r.partition) for r in served.sink.records] == [("spans", key, partition)] * 2


async def test_invalid_spans_are_reported_as_a_partial_success(served: Served) -> None:
    document = request_json(span_json(), span_json(traceId="00" * 16), span_json(spanId="00" * 8))
    status, body, _, _ = await sent(served, json.dumps(document).encode(), otlp.JSON)
    assert (status, json.loads(body)["partialSuccess"]["rejectedSpans"]) == (200, "2")
    status, body, _, _ = await sent(served, as_protobuf(document), otlp.PROTOBUF)
    partial = ExportTraceServiceResponse.FromString(body).partial_success
    assert (status, partial.rejected_spans, "trace id" in partial.error_message) == (200, 2, True)
    assert [record.topic for record in served.sink.records] == ["spans", "rejected", "rejected"] * 2


async def test_what_is_no_request_is_refused_for_good_and_what_is_not_stored_for_now(served: Served) -> None:
    status, body, content_type, _ = await sent(served, b"\xff\xff", otlp.PROTOBUF)
    # `google.rpc.Status`: field 1 is the code (3, invalid argument), field 2 the message.
    assert (status, body[:2], content_type) == (400, b"\x08\x03", otlp.PROTOBUF)
    status, body, _, _ = await sent(served, b"{", otlp.JSON)
    assert (status, json.loads(body)["code"]) == (400, 3)
    served.sink.failing = "queue_full"
    status, body, _, headers = await sent(served, json.dumps(request_json(span_json())).encode(), otlp.JSON)
    assert (status, json.loads(body)["code"], int(headers["Retry-After"]) > 0) == (503, 14, True)
    served.rules = RULES.model_copy(update={"customers": Customers({"acme": Customer(spans_per_second=0.1)})})
    served.sink.failing = None
    body = json.dumps(request_json(span_json())).encode()
    assert [(await sent(served, body, otlp.JSON))[0] for _ in range(2)] == [200, 429]


def export(port: int, compression: Compression) -> None:
    """Two spans as a program that is instrumented with OpenTelemetry's SDK makes and exports them."""
    exporter = OTLPSpanExporter(
        f"http://127.0.0.1:{port}/v1/traces", headers={"Authorization": "Bearer acme"}, compression=compression
    )
    provider = TracerProvider(resource=Resource.create({"service.name": "shop", "host.name": "h-1"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    with tracer.start_as_current_span("checkout", kind=SpanKind.SERVER) as root:
        root.set_attribute("http.route", "/checkout")
        with tracer.start_as_current_span("pay", links=[Link(root.get_span_context())]) as child:
            child.add_event("declined", {"code": 51})
            child.set_status(Status(StatusCode.ERROR, "declined"))
    provider.shutdown()


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
async def test_the_python_sdk_exports_as_it_is(served: Served, compression: Compression) -> None:
    await asyncio.to_thread(export, served.port, compression)
    child, root = (SPAN.decode(record.value) for record in served.sink.records)
    assert (root.customer_id, root.name, root.kind, root.service) == ("acme", "checkout", "server", "shop")
    assert (child.parent_span_id, child.trace_id) == (root.span_id, root.trace_id)
    assert (root.parent_span_id, root.attrs, root.scope) == (None, {"http.route": "/checkout"}, "tests")
    assert (child.status, child.status_message, child.events[0].attrs) == ("error", "declined", {"code": 51})
    assert child.links[0].span_id == root.span_id
    assert child.resource["host.name"] == "h-1"
    assert root.start_us <= child.start_us <= child.end_us <= root.end_us
