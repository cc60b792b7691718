"""The other applications on a real broker: in by HTTP at the collector, through a slot that is killed, out by topic and lookup."""

import contextlib
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from opentelemetry.exporter.otlp.proto.http import Compression

from deploy.demo.applications.api_baselines import first_window_ms
from deploy.local.broker import Broker
from deploy.local.ports import free_port
from services.collector.sink.records import Record
from shared import codec, topics
from shared.schemas.apis.anomaly import ApiAnomaly
from shared.schemas.apis.window import ApiWindow
from shared.schemas.trace import Trace
from tests.integration.collector.collecting import Collector, Reader, reading
from tests.integration.parts.lookup_slots import LookupSlot
from tests.integration.parts.slots import wait_until
from tests.unit.collector.intake.test_otlp import export

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def collector(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder = tmp_path_factory.mktemp("collector")
    # What is answered 503 may be stored all the same, and a client that sends it again doubles it: here the broker has its time.
    with Collector(broker.bootstrap, folder, free_port(), linger_ms="0", ack_seconds_max="60") as running:
        yield running


@contextlib.contextmanager
def working(broker: Broker, folder: Path, application: str, **environ: str) -> Iterator[LookupSlot]:
    """A slot that works one application, and answers for it."""
    server = LookupSlot(broker, folder, 0, PROCESSOR_APPLICATION=application, **environ)
    server.slot.start()
    try:
        wait_until(server.slot.is_ready, "the slot works")
        yield server
    finally:
        server.slot.end()


def post(collector: Collector, path: str, document: Any) -> None:
    """Posts JSON and expects 200."""
    body = json.dumps(document).encode()
    request = urllib.request.Request(collector.url + path, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=90) as answer:
        assert answer.status == 200


def span(
    trace_id: str, span_id: str, parent: str, at_ms: int, *, service: str = "shop", status: int = 0, **attrs: str
) -> dict[str, Any]:
    """A request with one server span, as OTLP's JSON has it."""
    attributes = [{"key": name, "value": {"stringValue": value}} for name, value in attrs.items()]
    attributes += [{"key": "http.response.status_code", "value": {"intValue": str(status)}}] if status else []
    document = {
        "traceId": trace_id,
        "spanId": span_id,
        "parentSpanId": parent,
        "name": "GET",
        "kind": 2,
        "startTimeUnixNano": str((at_ms - 5) * 1_000_000),
        "endTimeUnixNano": str(at_ms * 1_000_000),
        "attributes": attributes,
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [document]}]}]}


def newest_traces(reader: Reader) -> dict[str, Trace]:
    """The newest row of each trace."""
    rows = [codec.TRACE.decode(record.value) for record in reader.records if record.topic == topics.TRACES.name]
    return {row.trace_id: row for row in sorted(rows, key=lambda row: row.revision)}


def test_spans_become_traces_through_a_kill_and_can_be_asked_for(
    broker: Broker, collector: Collector, tmp_path: Path
) -> None:
    now_ms = time.time_ns() // 1_000_000
    trace_ids = [f"{number:032x}" for number in range(1, 21)]
    with (
        reading(broker.bootstrap, topics.TRACES.name, topics.REJECTED.name) as reader,
        working(broker, tmp_path, "traces", TRACES_GAP_MS="1000", TRACES_GRACE_MS="600000") as traces,
    ):
        for trace_id in trace_ids:
            post(collector, "/v1/traces", span(trace_id, "1" * 16, "", now_ms))
        wait_until(lambda: traces.get(f"/traces/{trace_ids[0]}")[0] == 200, "an open trace is found")
        traces.slot.kill()
        traces.slot.start()
        for trace_id in trace_ids:
            post(collector, "/v1/traces", span(trace_id, "2" * 16, "1" * 16, now_ms + 1, service="stock"))
        # The SDK's own, of its own customer.
        export(int(collector.url.rpartition(":")[2]), Compression.Gzip)
        reader.until(lambda _: sorted(row.span_count for row in newest_traces(reader).values()) == [2] * 21)
        newest = newest_traces(reader)
        assert {row.customer_id for row in newest.values()} == {"default", "acme"}
        assert all(row.complete and row.part == 1 and row.duplicate_count == 0 for row in newest.values())
        (own,) = (row for row in newest.values() if row.customer_id == "acme")
        assert (own.root_name, own.error, own.root_error) == ("checkout", True, False)
        status, found = traces.answer_to(f"/traces/{own.trace_id}?customer=acme")
        assert (status, [one["operationName"] for one in found["data"][0]["spans"]]) == (200, ["checkout", "pay"])
        assert found["data"][0]["parts"][0]["state"] == "finished"
        assert traces.answer_to(f"/traces/{'f' * 32}")[0] == 404
        assert not [record for record in reader.records if record.topic == topics.REJECTED.name]
        assert traces.slot.terminate() == 0, traces.slot.log_tail()


def test_calls_and_server_spans_become_a_schema_and_drift_is_reported(
    broker: Broker, collector: Collector, tmp_path: Path
) -> None:
    now_ms = time.time_ns() // 1_000_000

    def called(path: str, body: Any) -> dict[str, Any]:
        call = {"method": "GET", "host": "api.example", "path": path, "status": 200, "time_ms": now_ms}
        return call | {"response": {"body": body}}

    def kinds(records: list[Record]) -> list[tuple[str, str]]:
        changes = [codec.API_CHANGE.decode(one.value) for one in records if one.topic == topics.API_CHANGES.name]
        return [(one.kind, f"{one.method} {one.path}{one.pointer}") for one in changes if one.host == "api.example"]

    (tmp_path / "traces").mkdir()
    with (
        reading(broker.bootstrap, topics.API_CHANGES.name, topics.REJECTED.name) as reader,
        # The span's call takes the way through `traces`, and must come while the API is still learned.
        working(broker, tmp_path, "api_schemas", API_SCHEMAS_LEARNING_MS="20000") as schemas,
        working(broker, tmp_path / "traces", "traces"),
    ):
        post(collector, "/v1/api-calls", {"calls": [called(f"/users/{number}", {"id": number}) for number in range(9)]})
        route = {"http.request.method": "GET", "http.route": "/carts/:id", "server.address": "api.example"}
        # The spans of one trace are in another partition than the calls of their API.
        post(collector, "/v1/traces", span("a" * 32, "1" * 16, "", now_ms, status=200, **route))
        schemas.slot.kill()
        schemas.slot.start()
        reader.until(lambda records: len(kinds(records)) == 2, 120)
        assert sorted(kinds(reader.records)) == [("learned", "GET /carts/{id}"), ("learned", "GET /users/{id}")]
        post(collector, "/v1/api-calls", called("/users/9", {"id": "nine"}))
        reader.until(lambda records: len(kinds(records)) == 3)
        assert kinds(reader.records)[-1] == ("type_change", "GET /users/{id}/response/200/body/id")
        wait_until(lambda: schemas.get("/apis/api.example/openapi.json")[0] == 200, "the document is found")
        document = schemas.answer_to("/apis/api.example/openapi.json")[1]
        OpenAPIV31SpecValidator(document).validate()
        assert sorted(document["paths"]) == ["/carts/{id}", "/users/{id}"]
        assert document["paths"]["/users/{id}"]["get"]["x-seen"]["count"] == 10
        assert not [record for record in reader.records if record.topic == topics.REJECTED.name]


def test_calls_become_windows_and_what_is_not_usual_an_anomaly(
    broker: Broker, collector: Collector, tmp_path: Path
) -> None:
    first_ms = first_window_ms(time.time_ns() // 1_000_000, 13)

    def window(number: int, ms: int) -> dict[str, Any]:
        """Thirty calls that end in the second of this number."""
        call = {"method": "GET", "host": "pay.example", "path": "/carts/7", "status": 200, "duration_us": ms * 1000}
        return {"calls": [call | {"time_ms": first_ms + number * 1_000 + place * 20} for place in range(30)]}

    def anomalies(records: list[Record]) -> list[ApiAnomaly]:
        found = [codec.API_ANOMALY.decode(one.value) for one in records if one.topic == topics.API_ANOMALIES.name]
        return [one for one in found if one.measure == "latency" and one.host == "pay.example"]

    def windows(records: list[Record]) -> list[ApiWindow]:
        found = [codec.API_WINDOW.decode(one.value) for one in records if one.topic == topics.API_WINDOWS.name]
        return [one for one in found if one.host == "pay.example"]

    rules = {
        "API_BASELINES_WINDOW_MS": "1000",
        # The clock of a partition runs on between two posts, and while the slot starts again: no window closes before its calls.
        "API_BASELINES_GRACE_MS": "15000",
        "API_BASELINES_SILENCE_MS": "0",
        "API_BASELINES_USUAL_WINDOWS_MIN": "8",
    }
    with (
        reading(broker.bootstrap, topics.API_ANOMALIES.name, topics.API_WINDOWS.name, topics.REJECTED.name) as reader,
        working(broker, tmp_path, "api_baselines", **rules) as baselines,
    ):
        for number in range(12):
            post(collector, "/v1/api-calls", window(number, 100))
        wait_until(lambda: baselines.get("/apis/pay.example/baselines")[0] == 200, "the API is found")
        baselines.slot.kill()
        baselines.slot.start()
        post(collector, "/v1/api-calls", window(12, 300))
        # The clock of a partition with nothing to read runs on: what is open closes by itself.
        reader.until(
            lambda records: any(one.state == "closed" for one in anomalies(records)) and len(windows(records)) == 13,
            120,
        )
        anomaly = anomalies(reader.records)
        assert [one.revision for one in anomaly] == [1, 2]
        assert (anomaly[0].path, anomaly[0].opened_ms) == ("/carts/{id}", first_ms + 12_000)
        assert anomaly[0].latest.value == pytest.approx(300_000, rel=0.01)
        own = [(row.start_ms - first_ms, row.calls) for row in windows(reader.records)]
        assert own == [(1_000 * n, 30) for n in range(13)]
        # Not of the newest window, which may be one without calls of the next hour.
        assert anomaly[0].latest.season == "hour_of_week"
        (endpoint,) = baselines.answer_to("/apis/pay.example/baselines")[1]["endpoints"]
        assert endpoint["path"] == "/carts/{id}"
        assert not [record for record in reader.records if record.topic == topics.REJECTED.name]
