"""The anomaly: a period of consecutive windows in which an endpoint of an API differed from its baseline.

The value of topic `api_anomalies`. The key of a row is (customer, host, method, path, measure, opened_ms); the highest revision is
valid.
"""

from typing import Final, Literal

import msgspec

SCHEMA_VERSION: Final = 1

Measure = Literal["latency", "client_errors", "server_errors", "traffic"]
Figure = Literal["p50", "p95", "p99", "client_errors", "server_errors", "calls"]
SeasonName = Literal["hour_of_week", "hour_of_day"]
#: Why it is over: windows were as usual again; it lasted so long that it is the new usual; the endpoint is not called any more.
EndReason = Literal["usual_again", "new_usual", "forgotten"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What of one window was not as usual, and how sure that is."""

    #: When the window began, ms since 1970.
    window_start_ms: int
    figure: Figure
    direction: Literal["above", "below"]
    #: The figure in the window and its usual value: µs of a quantile, errors as a fraction of calls, calls.
    value: float
    usual: float
    #: The modified z-score: how many usual deviations lie between the two.
    score: float
    #: How likely so much, or more, is where nothing has changed.
    probability: float
    #: Calls in the window; windows that it was compared with, and which these were.
    calls: int
    usual_windows: int
    season: SeasonName


class ApiAnomaly(msgspec.Struct, frozen=True, kw_only=True):
    """One revision: the first opens it, those after it continue it, the last closes it."""

    schema_version: int
    customer_id: str
    host: str
    method: str
    #: The path's template: `/users/{id}`.
    path: str
    measure: Measure
    #: When its first window began, ms since 1970.
    opened_ms: int
    revision: int
    state: Literal["open", "closed"]
    end_reason: EndReason | None
    #: When its last unusual window ended.
    last_ms: int
    window_ms: int
    #: Unusual windows.
    windows: int
    #: Of the last unusual window, and of the one that was least likely.
    latest: Evidence
    worst: Evidence
