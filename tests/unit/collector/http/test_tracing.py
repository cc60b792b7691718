"""A sampled request's trace: its span, the header of its records, the ids in its log lines, and what a slot adds to it."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.processor.engine.core.checkpoint import Checkpoint
from services.processor.engine.record import Output
from services.processor.engine.state.meta import Meta
from services.processor.runtime.telemetry.record_traces import RecordTraces
from services.rim.telemetry import tracing
from services.rim.telemetry.tracing import Traces
from shared.settings import Settings, SettingsError
from tests.unit.collector.http.serving import Served
from tests.unit.collector.intake.bodies import mux_body, mux_event


class Exported:
    """The spans that were exported, by name."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


@pytest.fixture
def exported() -> Exported:
    return Exported()


@pytest.fixture
async def traced(exported: Exported) -> AsyncIterator[Served]:
    served = Served(traces=Traces(exported.provider, 1.0))
    await served.start()
    yield served
    await served.stop()


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """What is logged, with the ids that lines get within a trace."""
    kept: list[dict[str, Any]] = []

    def keep(_logger: Any, _name: str, event: structlog.typing.EventDict) -> str:
        kept.append(dict(event))
        raise structlog.DropEvent

    usual = structlog.get_config()
    structlog.configure(processors=[tracing.correlate, keep], cache_logger_on_first_use=False)
    yield kept
    structlog.configure(**usual)


class Message:
    """A record as a consumer has it."""

    def __init__(self, record: Any) -> None:
        self._record = record

    def topic(self) -> str:
        return str(self._record.topic)

    def partition(self) -> int:
        return int(self._record.partition)

    def offset(self) -> int:
        return 0

    def key(self) -> bytes:
        return bytes(self._record.key)

    def headers(self) -> list[tuple[str, bytes]]:
        return [(name, value.encode() if isinstance(value, str) else value) for name, value in self._record.headers]

    def timestamp(self) -> tuple[int, int]:
        return 2, 1_000


async def test_one_trace_goes_from_the_post_to_the_row(
    traced: Served, exported: Exported, lines: list[dict[str, Any]]
) -> None:
    async with traced.client.post("/", data=mux_body(mux_event())) as answer:
        assert answer.status == 200

    (record,) = traced.sink.records
    (post,) = exported.named("POST mux")
    context = post.context
    trace_id, span_id = f"{context.trace_id:032x}", f"{context.span_id:016x}"
    ((name, value),) = record.headers
    assert name == "traceparent"
    # The last part is flags: sampled, and that the id is random.
    assert str(value).rsplit("-", 1) == [f"00-{trace_id}-{span_id}", f"{context.trace_flags:02x}"]
    (line,) = [line for line in lines if line["event"] == "traced_post"]
    assert (line["trace_id"], line["span_id"], line["accepted"]) == (trace_id, span_id, 1)

    slot = RecordTraces(Traces(exported.provider, 1.0))
    slot.read(Message(record))  # type: ignore[arg-type]
    assert record.key is not None
    meta = Meta(next_offsets={"beacons": 1}, clock_ms=0, commit_number=1)
    slot.committed(record.partition, Checkpoint({}, [Output("views", record.key, b"{}")], meta, 1, {}))
    for name in ("fold", "row"):
        (span,) = exported.named(name)
        assert span.parent is not None
        assert (span.context.trace_id, span.parent.span_id) == (context.trace_id, context.span_id)
        assert span.start_time == 1_000 * 1_000_000
    assert [line["trace_id"] for line in lines if line["event"] == "traced_row"] == [trace_id]


async def test_a_request_that_is_not_sampled_is_as_ever(exported: Exported) -> None:
    served = Served(traces=Traces(exported.provider, 0.0))
    await served.start()
    async with served.client.post(
        "/", data=mux_body(mux_event()), headers={"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}
    ):
        pass
    await served.stop()
    assert [record.headers for record in served.sink.records] == [[]]
    assert not exported.named("POST mux")


def test_traces_are_off_by_default_and_want_a_place_to_go() -> None:
    assert tracing.start("collector", Settings.load({})) is None
    with pytest.raises(SettingsError, match="PLAYHEAD_TRACE_URL"):
        Settings.load({"PLAYHEAD_TRACE_SHARE": "0.01"})


def test_a_line_outside_a_trace_has_no_ids() -> None:
    assert tracing.correlate(None, "info", {"event": "ready"}) == {"event": "ready"}
