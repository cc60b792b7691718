"""Which slices have more of what is too much than their share of viewers: the first answer to where. Pure."""

from collections.abc import Mapping
from typing import Final

from services.alerts.core.metrics import FIELDS, Metric
from services.alerts.core.series import Series, window
from services.alerts.core.slices import WHOLE, is_pair, values_of
from shared.schemas.alerts.event import SUSPECTS_MAX, SuspectSlice

#: A slice must explain so much more than its share of viewers.
_MORE_MIN: Final = 0.1
#: And so many hits: fewer say nothing.
_HITS_MIN: Final = 5


def rank(metric: Metric, series: Mapping[str, Series], rate: float, end_ms: int, buckets: int) -> list[SuspectSlice]:
    """The slices of the customer in the last `buckets`, the likeliest first; `rate` is what is usual, or the rule's threshold."""
    if metric.kind != "share" or WHOLE not in series:
        return []
    whole = window(series[WHOLE].buckets, end_ms, buckets)
    total = whole.counts
    # Of viewers each bucket counts all: together they are so many as there are on average.
    of_all = round(total[metric.of] / whole.buckets) if FIELDS[metric.of].endswith("_now") else total[metric.of]
    excess = total[metric.hits] - rate * total[metric.of]
    if excess <= 0:
        return []
    found: list[tuple[float, str, SuspectSlice]] = []
    for name, one in series.items():
        if name == WHOLE or is_pair(name):
            continue
        counts = window(one.buckets, end_ms, buckets).counts
        hits, of = counts[metric.hits], counts[metric.of]
        if hits < _HITS_MIN or not of:
            continue
        explains, share = (hits - rate * of) / excess, of / total[metric.of]
        if explains - share >= _MORE_MIN:
            suspect = SuspectSlice(
                slice=values_of(name), explains=explains, share=share, value=hits / of, of_all=of_all
            )
            found.append((share - explains, name, suspect))
    return [suspect for _, _, suspect in sorted(found, key=lambda one: one[:2])[:SUSPECTS_MAX]]
