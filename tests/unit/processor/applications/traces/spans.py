"""Spans for stories, and what a driver made of them."""

from typing import Any

from services.processor.applications.traces.app import application
from services.processor.applications.traces.settings import TraceRules
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import trace_key
from shared.schemas.span import Span
from shared.schemas.trace import Trace

T0 = 1_790_000_000_000
TRACE = "0af7651916cd43dd8448eb211c80319c"
KEY = trace_key("acme", TRACE)
RULES = TraceRules(gap_ms=1_000, grace_ms=5_000, kept_ms=60_000)
APPLICATION = application(RULES)


def span(name: str, from_ms: int, until_ms: int, parent: str | None = None, **fields: Any) -> Span:
    """A span named by one letter, which is its id too; times are ms after T0."""
    given = {"service": "shop", "trace_id": TRACE, "customer_id": "acme"} | fields
    return Span(
        schema_version=1,
        span_id=span_id(name),
        parent_span_id=None if parent is None else span_id(parent),
        name=name,
        start_us=(T0 + from_ms) * 1000,
        duration_us=(until_ms - from_ms) * 1000,
        recv_time_ms=0,
        **given,
    )


def span_id(name: str) -> str:
    return name.encode().hex().rjust(16, "0")


def pipe(driver: Driver, *spans: Span, at_ms: int | None = None) -> None:
    """Each comes as it ends, or at this time, ms after T0."""
    for one in spans:
        came_ms = one.end_us // 1000 if at_ms is None else T0 + at_ms
        driver.pipe(topics.SPANS, trace_key(one.customer_id, one.trace_id), codec.SPAN.encode(one), at_ms=came_ms)


def pass_time(driver: Driver, until_ms: int) -> None:
    """A span of another trace ends then."""
    pipe(driver, span("z", until_ms, until_ms, trace_id="f" * 32))


def rows(driver: Driver) -> list[Trace]:
    return [codec.TRACE.decode(output.value) for output in driver.outputs(topics.TRACES) if output.key == KEY]


def names(row: Trace) -> str:
    return "".join(one.name for one in row.spans)
