"""Views of an hour as they are: dimensions that depend on each other, rates that differ, and hours that differ by themselves.

A world is fixed by its seed: who watches with what over which network, and how often that fails. An hour is a draw from it: the mix
of viewers and the rates change a little each time, some titles are new, and viewers whose view fails try again.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import Counts, Floats, numbered
from shared.statistics.suspects.sampling import sampling

DIMENSIONS: Final = ("country", "asn", "cdn", "device", "os", "player_version", "title", "stream_type")
COUNTRIES: Final = 25
TITLES: Final = 300
#: Device, operating system and application that go together, and their shares.
_PLATFORMS: Final = (
    ("phone", "ios", "mobile", 0.22),
    ("phone", "android", "mobile", 0.28),
    ("tablet", "ios", "mobile", 0.06),
    ("tablet", "android", "mobile", 0.05),
    ("desktop", "windows", "web", 0.14),
    ("desktop", "macos", "web", 0.07),
    ("desktop", "linux", "web", 0.01),
    ("tv", "tizen", "tizen", 0.06),
    ("tv", "webos", "webos", 0.05),
    ("tv", "android", "androidtv", 0.04),
    ("console", "playstation", "playstation", 0.02),
)
_VERSIONS: Final = {"mobile": 5, "web": 4, "tizen": 3, "webos": 2, "androidtv": 3, "playstation": 2}
_CDN_SHARES: Final = np.array([4.0, 3.0, 2.0, 1.0])
#: How much rates of values differ: the standard deviation of their logs, by dimension and of pairs.
_SPREAD: Final = (0.3, 0.3, 0.15, 0.3, 0.2, 0.25, 0.2, 0.2)
_SPREAD_OF_PAIRS: Final = {("cdn", "asn"): 0.15, ("player_version", "title"): 0.1, ("country", "title"): 0.15}
#: How much shares and rates change from hour to hour, likewise.
_MIX_CHANGES: Final = 0.15
_RATE_CHANGES: Final = 0.02
#: Share of titles that nobody watched before.
_NEW_TITLES: Final = 0.02
#: Of those who fail, who tries again and fails again.
_TRIES_AGAIN: Final = 0.15

#: Views of which the values are chosen at once: what is compared lies in a core's cache then.
_AT_ONCE: Final = 1 << 15
#: Parts of the numbers from 0 to 1 for which the place of the first is known.
_BEGINS: Final = 1 << 14

Columns = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Hour:
    """Views of an hour: `columns` has a line a dimension; `rates` is how likely each is bad, `events` which are."""

    columns: Columns
    rates: Floats
    events: Floats


class World:
    """Who watches, and how often it goes wrong."""

    def __init__(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        sizes = chance.integers(3, 13, COUNTRIES)
        self._country_of = np.repeat(np.arange(COUNTRIES), sizes)
        shares = _zipf(COUNTRIES, 1.1)
        self._asn_shares = np.concatenate(
            [share * chance.dirichlet(5 * _zipf(size, 1.0) + 0.3) for share, size in zip(shares, sizes, strict=True)]
        )
        # A network peers with some CDNs more than with others.
        of_country = np.stack([chance.dirichlet(_CDN_SHARES) for _ in range(COUNTRIES)])
        self._cdn_shares = np.stack([chance.dirichlet(8 * of_country[country] + 0.05) for country in self._country_of])
        names = [sorted({platform[place] for platform in _PLATFORMS}) for place in (0, 1)]
        self._devices, self._systems = (
            np.array([names[place].index(platform[place]) for platform in _PLATFORMS]) for place in (0, 1)
        )
        platforms = np.array([platform[3] for platform in _PLATFORMS])
        self._platform_shares = np.stack([chance.dirichlet(30 * platforms) for _ in range(COUNTRIES)])
        self._versions, total = {}, 0
        for application, count in _VERSIONS.items():
            shares_of_versions = np.sort(chance.dirichlet(np.ones(count)))[::-1]
            self._versions[application] = (np.arange(total, total + count), shares_of_versions)
            total += count
        self._title_shares = _zipf(TITLES, 0.9)
        self._is_live = (chance.random(TITLES) < 0.25).astype(np.int64)
        self.sizes: Final = (COUNTRIES, len(self._country_of), 4, len(names[0]), len(names[1]), total, TITLES, 2)
        self._effects = [chance.normal(0, spread, size) for spread, size in zip(_SPREAD, self.sizes, strict=True)]
        self._pairs = [
            (places, chance.normal(0, spread, [self.sizes[place] for place in places]))
            for pair, spread in _SPREAD_OF_PAIRS.items()
            for places in ([DIMENSIONS.index(name) for name in pair],)
        ]

    def hour(self, chance: np.random.Generator, views: int, rate: float, *, is_first: bool) -> Hour:
        """An hour's views. New titles are in no first one."""
        columns = self._mix(chance, views, is_first=is_first)
        log = np.full(views, np.log(rate))
        for column, effects in zip(columns, self._effects, strict=True):
            log += (effects + chance.normal(0, _RATE_CHANGES, effects.size))[column]
        for places, effects in self._pairs:
            log += effects[columns[places[0]], columns[places[1]]]
        rates = np.minimum(np.exp(log), 0.95)
        return Hour(columns, rates, np.zeros(0))

    def _mix(self, chance: np.random.Generator, views: int, *, is_first: bool) -> Columns:
        def changed(shares: Floats) -> Floats:
            found = shares * np.exp(chance.normal(0, _MIX_CHANGES, shares.shape))
            made: Floats = found / found.sum(axis=-1, keepdims=True)
            return made

        def chosen(shares: Floats, by: Columns) -> Columns:
            bounds, number = np.cumsum(changed(shares), axis=1).T, chance.random(views)
            found = np.zeros(views, np.int64)
            # Bound by bound, and some views at a time: all at once take gigabytes, and more time.
            for some in (slice(first, first + _AT_ONCE) for first in range(0, views, _AT_ONCE)):
                for bound in bounds[:-1]:
                    found[some] += number[some] > np.take(bound, by[some])
            return found

        asn = _chosen(chance, changed(self._asn_shares), views)
        country = self._country_of[asn]
        cdn, platform = chosen(self._cdn_shares, asn), chosen(self._platform_shares, country)
        version = np.zeros(views, np.int64)
        applications = np.array([row[2] for row in _PLATFORMS])
        for application, (versions, shares) in self._versions.items():
            is_its = np.take(applications == application, platform)
            version[is_its] = versions[_chosen(chance, changed(shares), int(is_its.sum()))]
        titles = changed(self._title_shares)
        if is_first:
            titles[:: round(1 / _NEW_TITLES)] = 0
            titles /= titles.sum()
        title = _chosen(chance, titles, views)
        return np.stack(
            [country, asn, cdn, self._devices[platform], self._systems[platform], version, title, self._is_live[title]],
            dtype=np.int16,
            casting="same_kind",
        )


def drawn(chance: np.random.Generator, hour: Hour, rates: Floats) -> Hour:
    """The hour with bad views drawn by these rates; some who fail come again at once, and fail again."""
    events = chance.random(rates.size) < rates
    again = np.flatnonzero(events & (chance.random(rates.size) < _TRIES_AGAIN))
    columns, rates, events = (
        np.concatenate([part, part[..., again]], axis=-1) for part in (hour.columns, rates, events)
    )
    return Hour(columns, rates, events.astype(float))


def counted(world: World, now: Hour, usual: Hour, chance: np.random.Generator) -> Counts:
    """What is searched: all views, or a sample of them as large as the service draws it."""
    values = [[str(number) for number in range(size)] for size in world.sizes]
    columns, measured, weights = zip(*(_sampled(hour, chance) for hour in (now, usual)), strict=True)
    return numbered(DIMENSIONS, values, columns, *measured, sampled=weights)


def _sampled(hour: Hour, chance: np.random.Generator) -> tuple[list[Columns], tuple[Floats, Floats], float]:
    views, is_bad = hour.events.size, hour.events > 0
    how = sampling(views, int(is_bad.sum()))
    number = chance.integers(0, 1 << 32, views)
    chosen = number % np.where(is_bad, how.bad_of, how.good_of) == 0
    events = hour.events[chosen]
    measured = events, how.exposure(events, np.ones(events.size))
    return [column[chosen] for column in hour.columns], measured, how.weight


def _chosen(chance: np.random.Generator, shares: Floats, views: int) -> Columns:
    """What `chance.choice(shares.size, views, p=shares)` is, in a third of its time: it begins near each number's place."""
    bounds = np.cumsum(shares)
    bounds /= bounds[-1]
    begins = bounds.searchsorted(np.arange(_BEGINS) / _BEGINS, side="right")
    number, found = chance.random(views), np.zeros(views, np.int64)
    for first in range(0, views, _AT_ONCE):
        some = number[first : first + _AT_ONCE]
        places = np.take(begins, (some * _BEGINS).astype(np.int64))
        while np.any(is_above := np.take(bounds, places) <= some):
            places += is_above
        found[first : first + _AT_ONCE] = places
    return found


def _zipf(size: int, exponent: float) -> Floats:
    weights: Floats = 1 / np.arange(1, size + 1) ** exponent
    shares: Floats = weights / weights.sum()
    return shares
