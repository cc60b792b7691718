"""One endpoint in one window: calls, errors by class, durations as a log-bucket sketch. Pure; windows add up in any order."""

from typing import Final

import msgspec

from shared.schemas.apis.call import ApiCall
from shared.statistics.histogram import add, merge, quantile

#: A longer call counts as one of this length, µs (a day): so a sketch has no more than 1,300 buckets.
DURATION_US_MAX: Final = 86_400_000_000


class Window(msgspec.Struct, array_like=True):
    """What was counted. `latency` has the calls whose duration is known, by `shared.statistics.histogram`'s bucket of µs."""

    calls: int = 0
    client_errors: int = 0
    server_errors: int = 0
    latency: dict[int, int] = {}


class Figures(msgspec.Struct, array_like=True, frozen=True):
    """A window in a few numbers: what is remembered of it. Quantiles in µs."""

    start_ms: int
    calls: int
    client_errors: int
    server_errors: int
    timed_calls: int
    p50: float | None
    p95: float | None
    p99: float | None


def ended_ms(call: ApiCall) -> int:
    """When a call ended, ms since 1970: the time at which it counts, since it cannot be reported earlier."""
    return call.at_ms + (call.duration_us or 0) // 1000


def take_call(window: Window, call: ApiCall) -> None:
    """Counts a call."""
    window.calls += 1
    window.client_errors += 400 <= call.status < 500
    window.server_errors += call.status >= 500
    if call.duration_us is not None:
        add(window.latency, min(call.duration_us, DURATION_US_MAX))


def join(window: Window, other: Window) -> None:
    """Counts what another window of the same time has counted."""
    window.calls += other.calls
    window.client_errors += other.client_errors
    window.server_errors += other.server_errors
    merge(window.latency, other.latency)


def figures_of(window: Window, start_ms: int) -> Figures:
    """The window in a few numbers."""
    p50, p95, p99 = (quantile(window.latency, q) for q in (0.5, 0.95, 0.99))
    return Figures(
        start_ms,
        window.calls,
        window.client_errors,
        window.server_errors,
        sum(window.latency.values()),
        p50,
        p95,
        p99,
    )
