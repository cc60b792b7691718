"""Which slices have more of what is too much than their share of viewers: the first answer to where. Pure."""

from collections.abc import Mapping
from typing import Final

from services.alerts.core.metrics import Metric
from services.alerts.core.series import BUCKETS_MAX, Series, window
from shared.schemas.alerts.event import SUSPECTS_MAX, Suspect

#: A slice must explain so much more than its share of viewers.
_MORE_MIN: Final = 0.1
#: And so many hits: fewer say nothing.
_HITS_MIN: Final = 5


def rank(metric: Metric, series: Mapping[str, Series], whole: str, rate: float, end_ms: int) -> list[Suspect]:
    """The slices of the customer (or of slice `whole`), the likeliest first; `rate` is what is usual, or the rule's threshold."""
    if metric.kind != "share" or whole not in series:
        return []
    total = window(series[whole].buckets, end_ms, BUCKETS_MAX).counts
    excess = total[metric.hits] - rate * total[metric.of]
    if excess <= 0:
        return []
    found: list[tuple[float, Suspect]] = []
    for name, one in series.items():
        if name == whole or "=" not in name or (whole and whole not in name.split("&")):
            continue
        counts = window(one.buckets, end_ms, BUCKETS_MAX).counts
        hits, of = counts[metric.hits], counts[metric.of]
        if hits < _HITS_MIN or not of:
            continue
        explains, share = (hits - rate * of) / excess, of / total[metric.of]
        if explains - share >= _MORE_MIN:
            found.append((explains - share, Suspect(slice=name, explains=explains, share=share, value=hits / of)))
    return [one for _, one in sorted(found, key=lambda pair: (-pair[0], pair[1].slice))[:SUSPECTS_MAX]]
