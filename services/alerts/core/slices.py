"""Slices: the names of topic `live` and what they say, and which of them a rule judges. Pure."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from shared.schemas.alerts.rule import AlertRule
from shared.schemas.live import PAIR_SEPARATOR

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
