"""Whether a window left its baseline, and the evidence. Pure.

A figure is an anomaly when two independent tests agree. The modified z-score compares it with the deviations between past windows,
from all causes. The predictive test shows whether so few calls can show it at all: a quantile between two kinds of calls jumps by
chance. Traffic must also be outside the range of all past windows.

Sources: F. Anscombe, The transformation of Poisson, binomial and negative-binomial data (1948): the root of a count + 3/8 deviates
by 1/2; W. Conover, Practical Nonparametric Statistics (3rd ed., 1999), 3.2: a quantile is tested by the number of values beyond it;
those of `shared.statistics`.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import log, sqrt
from statistics import median
from typing import Final

from services.processor.applications.api_baselines.season import Baseline
from services.processor.applications.api_baselines.window import Figures, Window
from shared.schemas.apis.anomaly import Evidence, Figure, Measure
from shared.statistics.histogram import bucket_of
from shared.statistics.robust import deviation, modified_score
from shared.statistics.tails import count_beyond, share_at_least

#: Higher than the cut-off of 3.5 of Iglewicz and Hoaglin: a deviation from 24 windows is itself uncertain by a fifth, and a window
#: has three quantiles. If latency varies from window to window, 3.5 reports 7 windows in 1,000, and 5 reports one.
SCORE_MIN: Final = 5.0
#: Of each test. A window has ten: by chance one of 10,000 windows passes the predictive tests alone.
PROBABILITY_MAX: Final = 1e-5
#: A latency counts as changed from this factor on: smaller changes do not matter.
LATENCY_RATIO_MIN: Final = 1.2
#: And an error rate from this difference on, as a fraction of calls.
ERRORS_MORE_MIN: Final = 0.01
#: Timed calls that a window needs for its quantiles to be judged, or remembered as usual.
TIMED_CALLS_MIN: Final = 20
#: No share is known better than from so many calls: with 1,000 a rate of 10 % may differ by 1 % from hour to hour.
SHARE_TRUST_CALLS: Final = 1_000.0
#: And no traffic better than from so many: it may differ by 5 %.
TRAFFIC_TRUST_CALLS: Final = 400.0
#: Deviations are at least these: of a logarithm of latency (a bucket is 2 % wide), of an error rate, of the root of a count.
_LATENCY_DEVIATION_MIN: Final = 0.02
_ERRORS_DEVIATION_MIN: Final = 0.002
_TRAFFIC_DEVIATION_MIN: Final = 0.5

_QUANTILES: Final[tuple[Figure, ...]] = ("p50", "p95", "p99")
_ERRORS: Final[tuple[Measure, ...]] = ("client_errors", "server_errors")


def judge(window: Window, figures: Figures, baseline: Baseline) -> dict[Measure, Evidence]:
    """What of the window is not as usual: of each measure the least likely figure."""
    found: dict[Measure, Evidence] = {}
    for measure, evidence in _found(window, figures, baseline):
        known = found.get(measure)
        if known is None or evidence.probability < known.probability:
            found[measure] = evidence
    return found


def usual(baseline: Baseline) -> dict[Figure, float]:
    """The usual value of each figure: the median of the past windows; of errors the fraction of all their calls."""
    past = baseline.past
    calls = sum(one.calls for one in past)
    found: dict[Figure, float] = {"calls": float(median(one.calls for one in past))}
    if calls:
        found["client_errors"] = sum(one.client_errors for one in past) / calls
        found["server_errors"] = sum(one.server_errors for one in past) / calls
    for name in _QUANTILES:
        values = _past_quantiles(past, name)
        if values:
            found[name] = median(values)
    return found


def _found(window: Window, figures: Figures, baseline: Baseline) -> Iterator[tuple[Measure, Evidence]]:
    for quantile in _QUANTILES:
        if (evidence := _latency(window, figures, baseline, quantile)) is not None:
            yield "latency", evidence
    for measure in _ERRORS:
        if (evidence := _errors(figures, baseline, measure)) is not None:
            yield measure, evidence
    if (evidence := _traffic(figures, baseline)) is not None:
        yield "traffic", evidence


def _latency(window: Window, figures: Figures, baseline: Baseline, name: Figure) -> Evidence | None:
    value, past = getattr(figures, name), _past_quantiles(baseline.past, name)
    if figures.timed_calls < TIMED_CALLS_MIN or len(past) * 2 < len(baseline.past):
        return None
    usually = median(past)
    if value <= 0 or usually <= 0:
        return None
    score = modified_score(log(value), [log(one) for one in past if one > 0], _LATENCY_DEVIATION_MIN)
    if abs(score) < SCORE_MIN or max(value / usually, usually / value) < LATENCY_RATIO_MIN:
        return None
    # Not the quantiles are compared but how many calls lie beyond the first value that would be another latency.
    bound = bucket_of(usually * LATENCY_RATIO_MIN if score > 0 else usually / LATENCY_RATIO_MIN)
    probability = share_at_least(
        _beyond(window.latency, bound, is_above=score > 0),
        figures.timed_calls,
        past_hits=_beyond(baseline.latency, bound, is_above=score > 0),
        past_of=sum(baseline.latency.values()),
        trust=SHARE_TRUST_CALLS,
    )
    return _evidence(name, figures, baseline, value=value, usually=usually, score=score, probability=probability)


def _errors(figures: Figures, baseline: Baseline, name: Measure) -> Evidence | None:
    count: int = getattr(figures, name)
    calls = sum(one.calls for one in baseline.past)
    if not count or not calls:
        return None
    errors = sum(getattr(one, name) for one in baseline.past)
    value, usually = count / figures.calls, errors / calls
    if value - usually < ERRORS_MORE_MIN:
        return None
    score = modified_score(
        value, [getattr(one, name) / one.calls for one in baseline.past if one.calls], _ERRORS_DEVIATION_MIN
    )
    if score < SCORE_MIN:
        return None
    probability = share_at_least(count, figures.calls, past_hits=errors, past_of=calls, trust=SHARE_TRUST_CALLS)
    figure: Figure = "client_errors" if name == "client_errors" else "server_errors"
    return _evidence(figure, figures, baseline, value=value, usually=usually, score=score, probability=probability)


def _traffic(figures: Figures, baseline: Baseline) -> Evidence | None:
    counts = [one.calls for one in baseline.past]
    if min(counts) <= figures.calls <= max(counts):
        return None
    roots = [sqrt(one + 0.375) for one in counts]
    score = modified_score(sqrt(figures.calls + 0.375), roots, _TRAFFIC_DEVIATION_MIN)
    if abs(score) < SCORE_MIN:
        return None
    # Where traffic comes in bursts, a negative binomial of shape k, the root deviates by more than a Poisson's: (1 + mean / k) / 4.
    excess = 4 * deviation(roots) ** 2 - 1
    trust = min(TRAFFIC_TRUST_CALLS, sum(counts) / len(counts) / excess) if excess > 0 else TRAFFIC_TRUST_CALLS
    probability = count_beyond(figures.calls, past=sum(counts), windows=len(counts), trust=trust)
    return _evidence(
        "calls", figures, baseline, value=figures.calls, usually=median(counts), score=score, probability=probability
    )


def _evidence(
    figure: Figure,
    figures: Figures,
    baseline: Baseline,
    *,
    value: float,
    usually: float,
    score: float,
    probability: float,
) -> Evidence | None:
    if probability >= PROBABILITY_MAX:
        return None
    return Evidence(
        window_start_ms=figures.start_ms,
        figure=figure,
        direction="above" if score > 0 else "below",
        value=float(value),
        usual=float(usually),
        score=score,
        probability=probability,
        calls=figures.calls,
        usual_windows=len(baseline.past),
        season=baseline.season,
    )


def _past_quantiles(past: Iterable[Figures], name: Figure) -> list[float]:
    return [getattr(one, name) for one in past if one.timed_calls >= TIMED_CALLS_MIN]


def _beyond(latency: Mapping[int, int], bound: int, *, is_above: bool) -> int:
    return sum(count for bucket, count in latency.items() if (bucket > bound if is_above else bucket < bound))
