"""Whether a slice is beyond a rule at the end of a bucket, and the evidence. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from services.alerts.core.metrics import BUCKETS_A_MINUTE, METRICS, Metric
from services.alerts.core.series import BUCKETS_MAX, Bucket, Series, Window, window
from services.alerts.core.slices import WHOLE, values_of
from shared.schemas.alerts.event import Evidence
from shared.schemas.alerts.rule import AlertRule
from shared.schemas.live import BUCKET_MS
from shared.statistics.rates import likelihood, rate_of

#: Lengths of the windows that are compared with what is usual, in buckets: a large change shows in a short one, a small one in a
#: long one.
LENGTHS: Final = tuple(range(1, BUCKETS_MAX + 1))
#: Of each comparison, times this power of its window's buckets: of long windows fewer say something new, and they decide how late
#: the last incidents are found. A series has 120,960 buckets a week. Slices that a rule judges share it.
PROBABILITY_MAX: Final = 7e-9
PROBABILITY_POWER: Final = 3
#: It must also be unlikely where the rate is so many times the usual one for a while, as in an ad break or after a deploy. Such
#: bumps are the rate's own, and come too seldom for its variance to hold them. The probability is for a window of a minute.
#: A bump has many more short windows, so for these it is less, by this power of their length.
BUMP: Final = 1.25
BUMP_PROBABILITY_MAX: Final = 0.05
BUMP_POWER: Final = 5
#: Where no minute of the hour is known to differ.
_ALWAYS: Final = (1.0,) * BUCKETS_MAX


def judge(
    rule: AlertRule,
    name: str,
    series: Series,
    end_ms: int,
    *,
    slices: int = 1,
    usually: Sequence[float] = _ALWAYS,
) -> Evidence | None:
    """The evidence that the slice, one of so many, is beyond the rule in the time up to `end_ms`; None where it is not.

    `usually` is how many times the forecast the metric usually is, in the windows of each length that end then.
    """
    metric = METRICS[rule.metric]
    if name != WHOLE and not metric.is_of_slices:
        return None
    if rule.condition == "threshold":
        return _threshold(rule, metric, name, series, end_ms)
    return _anomaly(rule, metric, name, series, end_ms, probability_max=PROBABILITY_MAX / slices, usually=usually)


def _threshold(rule: AlertRule, metric: Metric, name: str, series: Series, end_ms: int) -> Evidence | None:
    length = min(max(rule.for_seconds * 1_000 // BUCKET_MS, 1), BUCKETS_MAX)
    found = window(series.buckets, end_ms, length)
    # Without the whole time there is no verdict.
    if found.buckets < length or not _has_enough(rule, metric, found):
        return None
    value = metric.figure(found.counts, found.buckets)
    if value is None or rule.threshold is None or not _is_beyond(rule, value):
        return None
    return _evidence(metric, name, found, end_ms, value=value, usual=rule.threshold)


def _is_beyond(rule: AlertRule, value: float | None) -> bool:
    if value is None or rule.threshold is None:
        return False
    return value > rule.threshold if rule.direction == "above" else value < rule.threshold


def _anomaly(
    rule: AlertRule,
    metric: Metric,
    name: str,
    series: Series,
    end_ms: int,
    *,
    probability_max: float,
    usually: Sequence[float],
) -> Evidence | None:
    learning = series.learning.get(metric.name)
    if learning is None or learning.expected is None:
        return None
    best: Evidence | None = None
    kind, usual = metric.rate, rate_of(learning)
    assert usual is not None
    for length in _far(rule, metric, series.buckets, end_ms, [usual * times for times in usually]):
        found = window(series.buckets, end_ms, length)
        if not _has_enough(rule, metric, found):
            continue
        if rule.threshold is not None and not _is_beyond(rule, metric.figure(found.counts, found.buckets)):
            continue
        hits, of, times = found.counts[metric.hits], metric.exposure(found.counts, found.buckets), usually[length - 1]
        likely = likelihood(kind, learning, hits, of, times=times)
        if likely is None or likely[0] >= probability_max * found.buckets**PROBABILITY_POWER:
            continue
        probability, rate = likely
        bump = likelihood(kind, learning, hits, of, times=max(times, BUMP))
        if bump is None or bump[0] >= BUMP_PROBABILITY_MAX * (found.buckets / BUCKETS_MAX) ** BUMP_POWER:
            continue
        if best is None or probability < (best.probability or 0.0):
            value = metric.figure(found.counts, found.buckets)
            assert value is not None
            shown = rate if metric.of >= 0 else rate * BUCKETS_A_MINUTE
            plain = _evidence(metric, name, found, end_ms, value=value, usual=shown)
            known = learning.expected
            best = replace(plain, probability=probability, season=known.season, usual_of=known.of)
    return best


def _far(rule: AlertRule, metric: Metric, buckets: Sequence[Bucket], end_ms: int, usual: Sequence[float]) -> list[int]:
    """The lengths, in buckets, of the windows that are as far from what is usual, given by length, as the rule says.

    Nearly all windows end here, so it adds up no more than it needs.
    """
    found, hits, of, place = list[int](), 0, 0, len(buckets)
    ratio = rule.ratio if metric.rate.is_above else 1 / rule.ratio
    for length in LENGTHS:
        first_ms = end_ms - length * BUCKET_MS
        while place and buckets[place - 1].start_ms >= first_ms:
            place -= 1
            counts = buckets[place].counts
            hits += counts[metric.hits]
            of += counts[metric.of] if metric.of >= 0 else 1
        bound = ratio * usual[length - 1] * of
        if of and (hits >= bound if metric.rate.is_above else hits <= bound):
            found.append(length)
    return found


def _has_enough(rule: AlertRule, metric: Metric, found: Window) -> bool:
    if metric.of >= 0:
        return found.counts[metric.enough] >= rule.viewers_min * found.buckets
    # Too little is counted where a partition has not reported.
    return found.is_whole or (metric.kind == "level" and rule.direction == "above")


def _evidence(metric: Metric, name: str, found: Window, end_ms: int, *, value: float, usual: float) -> Evidence:
    return Evidence(
        slice=values_of(name),
        value=value,
        usual=usual,
        hits=found.counts[metric.hits],
        of=metric.exposure(found.counts, found.buckets),
        seconds=found.buckets * BUCKET_MS // 1_000,
        at_ms=end_ms,
    )
