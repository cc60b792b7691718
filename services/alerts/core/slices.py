"""Slices: the names of topic `live` and their meaning, and the slices that a rule judges. Pure."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from services.alerts.core.metrics import counts_of
from shared.schemas.alerts.rule import AlertRule
from shared.schemas.live import BUCKET_MS, PAIR_SEPARATOR, SLICE_VALUE_CHARS_MAX
from shared.schemas.received import COLLECTOR, RELEASE, Received

#: So late a collector's report is still of the bucket that it names.
LATE_MS_MAX: Final = 15_000
#: The name of the whole customer.
WHOLE: Final = ""


@lru_cache(maxsize=65_536)
def _parsed(name: str) -> tuple[tuple[str, str], ...]:
    dimensions, _, values = name.partition("=")
    return tuple(zip(dimensions.split(","), values.split(PAIR_SEPARATOR), strict=False)) if name else ()


def values_of(name: str) -> dict[str, str]:
    """Dimension to value: of none (the whole), of one, or of a pair."""
    return dict(_parsed(name))


def is_pair(name: str) -> bool:
    """Whether it is of two dimensions."""
    return len(_parsed(name)) > 1


def dimensions_of(rule: AlertRule) -> frozenset[str]:
    """The dimensions whose slices the rule judges: none, one or two."""
    return frozenset({*rule.filter, *([rule.by] if rule.by else [])})


def is_judged(rule: AlertRule, name: str) -> bool:
    """Whether the rule judges the slice."""
    parts = _parsed(name)
    if len(parts) != len(rule.filter) + (rule.by is not None):
        return False
    return all(dimension == rule.by or rule.filter.get(dimension) == value for dimension, value in parts)


def pairs_of(rules: Iterable[AlertRule]) -> frozenset[frozenset[str]]:
    """The pairs of dimensions whose slices any of the rules judges."""
    return frozenset(pair for rule in rules if rule.is_enabled and len(pair := dimensions_of(rule)) > 1)


def is_followed(name: str, pairs: frozenset[frozenset[str]]) -> bool:
    """Whether a slice is followed: the whole and each single value always are, pairs where a rule judges them."""
    return not is_pair(name) or frozenset(values_of(name)) in pairs


def received_counts(received: Received) -> dict[str, list[int]]:
    """What a collector received of a customer, by slice: the whole, the collector, and each release."""
    whole = counts_of(received)
    found = {WHOLE: whole, f"{COLLECTOR}={received.collector[:SLICE_VALUE_CHARS_MAX]}": whole}
    return found | {f"{RELEASE}={name}": counts_of(one) for name, one in received.releases.items()}


def received_bucket(received: Received, at_ms: int) -> int:
    """The bucket of a report that came at this time: the collector's, unless its clock is wrong or the report late."""
    late_ms = at_ms - (received.bucket_ms + BUCKET_MS)
    if -BUCKET_MS <= late_ms <= LATE_MS_MAX:
        return received.bucket_ms
    return at_ms - at_ms % BUCKET_MS - BUCKET_MS
