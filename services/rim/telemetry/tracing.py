"""Traces of sampled requests, by OpenTelemetry. Off unless `PLAYHEAD_TRACE_SHARE` is over 0; while off, OpenTelemetry is not
imported.

The context of a trace goes with its records in Kafka header `traceparent` (W3C Trace Context). Spans leave as OTLP over HTTP,
from a thread that drops what it cannot send: nothing waits for a trace.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import structlog

from shared.settings import Settings, SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

log = structlog.get_logger(__name__)

HEADER: Final = "traceparent"
_SEND_SECONDS_MAX: Final = 5.0
_CLOSE_MS_MAX: Final = 5_000


class Traces:
    """Makes spans. Safe to use from any thread."""

    def __init__(self, provider: "TracerProvider", share: float) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("playhead")
        self._share = share

    @contextmanager
    def request(self, name: str, **attributes: str | int) -> Iterator[str | None]:
        """A span around what is done for a request, and its traceparent; None for the most, which are not sampled.

        A client's trace context is not used: a client could have all of its requests traced.
        """
        if random.random() >= self._share:
            yield None
            return
        with self._tracer.start_as_current_span(name, attributes=attributes) as span:
            yield _traceparent(span)

    def note(self, name: str, parent: str, begin_ns: int, end_ns: int, **attributes: str | int) -> str:
        """Adds a span that is over already, under `parent`; its trace id. Times are ns since 1970."""
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

        context = tracecontext.TraceContextTextMapPropagator().extract({HEADER: parent})
        span = self._tracer.start_span(name, context, attributes=attributes, start_time=begin_ns)
        span.end(max(begin_ns, end_ns))
        return f"{span.get_span_context().trace_id:032x}"

    def close(self) -> None:
        """Sends what is left, within a few seconds."""
        self._provider.force_flush(_CLOSE_MS_MAX)
        self._provider.shutdown()


def start(service: str, settings: Settings) -> Traces | None:
    """Traces as the settings ask for them; None where they are off. Raises `SettingsError` where OpenTelemetry is missing."""
    if not settings.trace_share:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as missing:
        raise SettingsError(f"PLAYHEAD_TRACE_SHARE needs the extra `tracing` ({missing})") from missing
    provider = TracerProvider(resource=Resource({"service.name": f"playhead-{service}"}), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=settings.trace_url, timeout=_SEND_SECONDS_MAX)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    log.info("traces", share=settings.trace_share, url=settings.trace_url)
    return Traces(provider, settings.trace_share)


def correlate(_logger: Any, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Adds the ids of the trace and span that the line was written in, if any: for structlog."""
    from opentelemetry import trace  # noqa: PLC0415

    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event.setdefault("trace_id", f"{context.trace_id:032x}")
        event.setdefault("span_id", f"{context.span_id:016x}")
    return event


def _traceparent(span: "Span") -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
