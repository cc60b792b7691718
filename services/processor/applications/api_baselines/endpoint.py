"""One endpoint of an API: its open windows, and the row of a closed window. Pure."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import msgspec

from services.processor.applications.api_baselines.anomaly import Anomaly, AnomalyChange, follow
from services.processor.applications.api_baselines.judging import judge, usual
from services.processor.applications.api_baselines.season import Season, baseline_at, learn
from services.processor.applications.api_baselines.settings import BaselineRules
from services.processor.applications.api_baselines.window import Figures, Window, figures_of, join
from shared.schemas.apis.anomaly import Figure, Measure, SeasonName
from shared.statistics.weeks import hour_of_week

WindowState = Literal["learning", "usual", "anomalous"]


class Last(msgspec.Struct, array_like=True):
    """The last window that closed, and what was usual then."""

    figures: Figures
    state: WindowState
    season: SeasonName | None
    usual_windows: int
    usual: dict[Figure, float]


class Endpoint(msgspec.Struct, array_like=True):
    """One endpoint. Times in ms since 1970, as calls report them."""

    #: When the next window that closes begins; and the first call.
    next_ms: int
    since_ms: int
    called_ms: int
    #: Windows that are open, by when they begin.
    windows: dict[int, Window] = {}
    late_calls: int = 0
    anomalies: dict[Measure, Anomaly] = {}
    #: Goes up when what was usual is forgotten.
    epoch: int = 0
    #: The hours of the week of which anything is remembered.
    hours: list[int] = []
    is_judged: bool = False
    last: Last | None = None


class Closed(NamedTuple):
    """What a closed window brings."""

    window: Window
    figures: Figures
    state: WindowState
    changes: list[AnomalyChange]
    #: The hour of the week whose season has changed, and that season.
    learned: tuple[int, Season] | None


_ENDED_BY_CHANGE: Final = "new_usual"


def close(endpoint: Endpoint, season_of: Callable[[int], Season | None], rules: BaselineRules) -> Closed:
    """Closes the endpoint's next window: judges it, follows anomalies, and learns it where it is usual.

    `season_of` gives what is stored of an hour of the week.
    """

    def current(hour: int) -> Season | None:
        season = season_of(hour)
        return season if season is not None and season.epoch == endpoint.epoch else None

    start_ms = endpoint.next_ms
    window = endpoint.windows.pop(start_ms, None) or Window()
    endpoint.next_ms += rules.window_ms
    figures = figures_of(window, start_ms)
    # The window of the first call began before it.
    if start_ms <= endpoint.since_ms:
        return Closed(window, figures, "learning", [], None)
    hour = hour_of_week(start_ms)
    baseline = baseline_at(hour, current, windows_min=rules.usual_windows_min, windows_max=rules.usual_windows_max)
    found = {} if baseline is None else judge(window, figures, baseline)
    changes = follow(
        endpoint.anomalies,
        found,
        window_ms=rules.window_ms,
        start_ms=start_ms,
        closing_windows=rules.closing_windows,
        anomaly_ms_max=rules.anomaly_ms_max,
    )
    state: WindowState = "learning" if baseline is None else "anomalous" if found else "usual"
    endpoint.is_judged = endpoint.is_judged or baseline is not None
    endpoint.last = Last(
        figures,
        state,
        baseline.season if baseline else None,
        len(baseline.past) if baseline else 0,
        usual(baseline) if baseline else {},
    )
    if any(one.end_reason == _ENDED_BY_CHANGE for one in changes):
        endpoint.epoch += 1
    # What is not as usual must not become it: not while it lasts, nor while it is not sure to be over.
    if endpoint.anomalies or found:
        return Closed(window, figures, state, changes, None)
    season = current(hour) or Season(endpoint.epoch)
    learn(season, window, figures, windows_max=rules.usual_windows_max)
    endpoint.hours = sorted({*endpoint.hours, hour})
    return Closed(window, figures, state, changes, (hour, season))


def absorb(endpoint: Endpoint, other: Endpoint) -> None:
    """The other turned out to be the same endpoint: its open windows count here.

    What the other has learned is dropped: it covers only some of the calls.
    """
    for start_ms, window in other.windows.items():
        join(endpoint.windows.setdefault(start_ms, Window()), window)
    endpoint.next_ms = min(endpoint.next_ms, other.next_ms)
    endpoint.called_ms = max(endpoint.called_ms, other.called_ms)
    endpoint.late_calls += other.late_calls
