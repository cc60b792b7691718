"""A sampled beacon's trace, from its POST to its row: the spans that a real OTLP receiver gets, and the log lines with its id."""

import http.server
import json
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import wait_until
from shared import topics
from shared.topics import Topic
from tests.integration.collector.collecting import SECONDS_MAX, Collector, reading
from tests.integration.parts.brokers import OF_COLLECTOR, OF_VIEWS
from tests.integration.parts.slots import Slot

pytestmark = pytest.mark.integration

KEY = "acme:v1"
BEACONS = b"""{"meta": {"transmission_timestamp": 1700000000500}, "events": [
  {"e": "viewstart", "xid": "v1", "ake": "acme", "xsqno": 1, "uti": 1700000000000},
  {"e": "viewend", "xid": "v1", "ake": "acme", "xsqno": 2, "uti": 1700000000400}]}"""


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return (*OF_VIEWS, *OF_COLLECTOR)


class Receiver:
    """Takes spans as OpenTelemetry's own classes read them."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Span]] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = ExportTraceServiceRequest()
                request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.take(request)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"

    def take(self, request: Any) -> None:
        for resource in request.resource_spans:
            (name,) = (a.value.string_value for a in resource.resource.attributes if a.key == "service.name")
            self.spans += [(name, span) for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[tuple[str, Span]]:
        return [span for span in self.spans if span[1].name == name]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def post(collector: Collector) -> None:
    request = urllib.request.Request(collector.url, data=BEACONS, headers={"Content-Type": "text/plain"})
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        assert answer.status == 200


def lines(log: str, event: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in events if line.get("event") == event]


def test_a_sampled_beacon_is_followed_from_its_post_to_its_row(
    own_broker: Broker, tmp_path: Path, receiver: Receiver
) -> None:
    traced = {"PLAYHEAD_TRACE_SHARE": "1", "PLAYHEAD_TRACE_URL": receiver.url}
    slot = Slot(own_broker.bootstrap, tmp_path, 0, VIDEO_VIEWS_FINISH_CLEAN_MS="100", **traced)
    slot.start()
    try:
        with Collector(own_broker.bootstrap, tmp_path, free_port(), environ=traced) as collector:
            wait_until(slot.is_ready, SECONDS_MAX, "the slot works")
            post(collector)
            wait_until(lambda: bool(receiver.named("row")), SECONDS_MAX, "the row's span")
            wait_until(lambda: bool(receiver.named("POST mux")), SECONDS_MAX, "the request's span")
            stored = lines(collector.child.log_file.read_text(), "traced_post")
        assert slot.terminate() == 0
    finally:
        slot.end()

    ((who, request),) = receiver.named("POST mux")
    folds, ((by, row),) = receiver.named("fold"), receiver.named("row")
    assert (who, by, len(folds)) == ("playhead-collector", "playhead-processor", 2)
    spans = [request, row, *(fold for _, fold in folds)]
    assert len({span.trace_id for span in spans}) == 1
    assert all(span.parent_span_id == request.span_id for span in spans[1:])
    # The collector ends its span when it has answered. The slot may have made the row by then: the record was there before.
    assert row.end_time_unix_nano >= request.start_time_unix_nano
    assert {a.key: a.value.string_value for a in row.attributes} == {"topic": topics.VIEWS.name}

    trace_id = request.trace_id.hex()
    assert [(line["trace_id"], line["span_id"], line["accepted"]) for line in stored] == [
        (trace_id, request.span_id.hex(), 2)
    ]
    rows = lines(slot.log_file.read_text(), "traced_row")
    assert [(line["trace_id"], line["key"]) for line in rows] == [(trace_id, KEY)]


def test_by_default_no_record_carries_a_context_and_nothing_that_traces_is_loaded(
    own_broker: Broker, tmp_path: Path
) -> None:
    with (
        Collector(own_broker.bootstrap, tmp_path, free_port(), environ={"PYTHONPROFILEIMPORTTIME": "1"}) as collector,
        reading(own_broker.bootstrap, topics.BEACONS.name) as reader,
    ):
        post(collector)
        records = reader.until(lambda records: len(records) >= 2)
        assert [record.headers for record in records] == [[], []]
        # Python reports every module it loads. The messages of the protocol are the intake's, for spans that others send.
        loaded = {line.rpartition("|")[2].strip() for line in collector.child.log_file.read_text().splitlines()}
        assert "services.rim.telemetry.tracing" in loaded
        theirs = {name for name in loaded if name.startswith("opentelemetry.")}
        assert {name for name in theirs if not name.startswith("opentelemetry.proto")} == set()
