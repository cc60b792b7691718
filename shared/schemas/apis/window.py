"""One endpoint of an API in one window of time: how often it was called, how it answered, how long it took.

The value of topic `api_windows`.
"""

from typing import Final, Literal

import msgspec

SCHEMA_VERSION: Final = 1


class ApiWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The calls that ended from `start_ms` on for `window_ms`, ms since 1970. A window without a call has no row."""

    schema_version: int
    customer_id: str
    host: str
    method: str
    #: The path's template: `/users/{id}`.
    path: str
    start_ms: int
    window_ms: int
    calls: int
    #: Answers 400 to 499, and from 500 on.
    client_errors: int
    server_errors: int
    #: Calls that came after their window had closed, since the last row: in no window.
    late_calls: int
    #: Whether the window was compared with a baseline, and left it.
    state: Literal["learning", "usual", "anomalous"]
    #: Calls whose duration is known, and its quantiles, µs.
    timed_calls: int
    latency_us_p50: float | None
    latency_us_p95: float | None
    latency_us_p99: float | None
    #: All durations: `shared.statistics.histogram`'s buckets of µs, and how many fell into each. They add up over windows.
    latency_buckets: list[int]
    latency_counts: list[int]
