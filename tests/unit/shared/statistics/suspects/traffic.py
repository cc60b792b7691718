"""Made traffic of a range: views with a country, a network, a device, a version and a CDN, of which a cohort may be worse."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from shared.statistics.suspects.counts import (
    Counts,
    Floats,
    coded,
)
from shared.statistics.suspects.suspect import Suspect

Columns = dict[str, list[str | None]]
#: Whether each view is in the cohort that is worse.
Within = Callable[[Columns, int], bool]

NETWORKS = {"DE": ["3320", "3209", "6830"], "FR": ["3215", "12322"], "LU": ["6661"]}
DEVICES = {"phone": ["app 1", "app 2"], "tv": ["tv 1"], "desktop": ["web 1", "web 2"]}
CDNS = ["akamai", "fastly", "own"]


@dataclass(frozen=True)
class Range:
    """Views of a range, and which of them are bad."""

    columns: Columns
    events: Floats

    @property
    def measured(self) -> tuple[Floats, Floats]:
        return self.events, np.ones(self.events.size)


def traffic(seed: int, views: int, rate: float, factor: float = 1.0, within: Within | None = None) -> Range:
    """Views of which `rate` are bad, and `factor` times as many of those within."""
    chance = np.random.default_rng(seed)
    # A view's draws follow one another.
    places = iter(chance.random((views, 5)).T ** 2)
    country, country_names = _drawn(next(places), {"": [*NETWORKS]})
    device, device_names = _drawn(next(places), {"": [*DEVICES]})
    drawn = {
        "country": (country, country_names),
        "asn": _drawn(next(places), NETWORKS, country),
        "device": (device, device_names),
        "player_version": _drawn(next(places), DEVICES, device),
        "cdn": _drawn(next(places), {"": CDNS}),
    }
    columns: Columns = {name: [names[one] for one in codes.tolist()] for name, (codes, names) in drawn.items()}
    is_worse = those_within(columns, within) if within else np.zeros(views, bool)
    return Range(columns, (chance.random(views) < rate * np.where(is_worse, factor, 1.0)).astype(float))


def _drawn(places: Floats, values: dict[str, list[str]], group: Any = 0) -> tuple["np.ndarray[Any, Any]", list[str]]:
    """A value of its group for each view, by where between 0 and 1 it is among them: its place in the list that is returned too."""
    sizes = np.array([len(of_group) for of_group in values.values()])
    size, before = sizes[group], (np.cumsum(sizes) - sizes)[group]
    return before + np.minimum((size * places).astype(int), size - 1), [
        one for names in values.values() for one in names
    ]


def those_within(columns: Columns, within: Within) -> "np.ndarray[Any, Any]":
    """Whether each view is within: views of the same values are alike, and there are few kinds of them."""
    kinds: dict[tuple[str | None, ...], bool] = {}
    found = []
    for number, row in enumerate(zip(*columns.values(), strict=True)):
        if row not in kinds:
            kinds[row] = within(columns, number)
        found.append(kinds[row])
    return np.array(found, bool)


def is_of(**values: str) -> Within:
    return lambda columns, number: all(columns[name][number] == value for name, value in values.items())


def counted(now: Range, usual: Range) -> Counts:
    return coded(now.columns, usual.columns, now.measured, usual.measured)


def named(found: list[Suspect]) -> list[dict[str, str | None]]:
    return [dict(one.values) for one in found]


def rounded(found: list[Suspect]) -> list[tuple[Any, ...]]:
    """Sums of the same numbers in another order differ in their last digits."""

    def near(one: Any) -> Any:
        return tuple(map(near, one)) if isinstance(one, tuple) else round(one, 9) if isinstance(one, float) else one

    return [near(astuple(one)) for one in found]
