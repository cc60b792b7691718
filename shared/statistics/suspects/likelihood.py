"""How well a cohort explains a change, from its counts and all counts. Pure, over arrays of cohorts.

Events are Poisson. Views of a cohort have a usual rate of their own, which is measured in the usual range. Now it is multiplied
by a factor. The explanation "this cohort by one factor, all else by another" is compared with "everything by one". The log of the
ratio of their likelihoods is Kulldorff's scan statistic (1997) with a measured baseline, in nats.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.counts import Floats

#: How many events the usual rate of a cohort is worth before any is seen, at least and at most: rates differ by 70 %, or by 22 %.
PRIOR_EVENTS: Final = (2.0, 50.0)
#: A prior rate is in conflict with the counts where they are so much less likely under it than under their own rate, nats.
_CONFLICT_NATS: Final = 3.0
#: Fewer events now are no incident.
EVENTS_MIN: Final = 3.0
#: A cohort that is all there is has no rest: less of the exposure than this is rounding.
_REST_MIN: Final = 1e-6


@dataclass(frozen=True)
class Apart:
    """How far cohorts are apart by themselves."""

    #: The standard deviation of the factor's log.
    natural: float
    #: A smaller factor, beside the rest, is no incident.
    factor_min: float
    #: By how much counts vary more than Poisson's do.
    clumping: float = 1.0
    #: How many events the usual rate of a cohort is worth before any is seen.
    prior_events: float = PRIOR_EVENTS[0]
    #: Now and usually, what the exposure of a view without events is, where such views are a sample: `Side.sampled`.
    sampled: tuple[float, float] = (0.0, 0.0)


#: From one range to another.
OVER_TIME: Final = Apart(0.07, 1.25)
#: From one cohort to another in the same range. How much they vary is measured with all counts; devices and networks that are less
#: than twice as bad are so all the time.
AMONG_COHORTS: Final = Apart(0.0, 2.0)


@dataclass(frozen=True)
class Quad:
    """Events and exposure, now and usually: of one cohort or of many."""

    events: Floats
    exposure: Floats
    usual_events: Floats
    usual_exposure: Floats

    def __sub__(self, other: "Quad") -> "Quad":
        return Quad(*(mine - its for mine, its in zip(self.parts, other.parts, strict=True)))

    def __getitem__(self, which: NDArray[np.intp]) -> "Quad":
        return Quad(*(part[which] for part in self.parts))

    @property
    def parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """All four."""
        return self.events, self.exposure, self.usual_events, self.usual_exposure


@dataclass(frozen=True)
class Evidence:
    """How much better each cohort explains the change than chance does, and than chance and natural change do, nats."""

    gain: Floats
    beyond: Floats
    #: Events now beyond those expected, were the cohort changed as the rest is.
    excess: Floats
    #: How much more than the rest it is multiplied.
    factor: Floats

    def __getitem__(self, which: NDArray[np.intp]) -> "Evidence":
        return Evidence(self.gain[which], self.beyond[which], self.excess[which], self.factor[which])

    @property
    def gains(self) -> tuple[Floats, Floats]:
        """The gain of all, and of those alone that can be suspects: in others an incident shows, diluted."""
        return self.gain, np.where(self.beyond > -np.inf, self.gain, 0.0)


def evidence(of: Quad, total: Quad, prior_rate: Floats, apart: Apart = OVER_TIME) -> Evidence:
    """The evidence for each cohort. `prior_rate` is what its usual rate is thought to be before it is measured."""
    rest = Quad(*(np.maximum(part, 0.0) for part in (total - of).parts))
    prior_events = prior_weight(of.usual_events, of.usual_exposure * prior_rate, apart.prior_events)
    usual = of.usual_events + prior_events
    base = of.usual_exposure + prior_events / prior_rate
    # The rest likewise: where it never has events, that it has none now says something.
    overall = (total.usual_events + 0.5) / np.maximum(total.usual_exposure, 1.0)
    rest = replace(
        rest,
        usual_events=rest.usual_events + apart.prior_events,
        usual_exposure=rest.usual_exposure + apart.prior_events / overall,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        common = _common_factor(of, rest, usual, base)
        alone = of.events * base / (of.exposure * usual)
        # A rest without events is as good as one with half an event.
        elsewhere = np.maximum(rest.events, 0.5) * rest.usual_exposure / (rest.exposure * rest.usual_events)
        elsewhere = np.where(rest.exposure > 0, elsewhere, 1.0)
        gain = (
            _best(of.events, usual)
            + _best(rest.events, rest.usual_events)
            - _fit(of.events, of.exposure, usual, base, common)
            - _fit(rest.events, rest.exposure, rest.usual_events, rest.usual_exposure, common)
        )
        factor = alone / elsewhere
        # The variance of the factor's log, by chance and beside natural change.
        clumped = in_clumps(factor, apart.clumping)
        chance = apart.clumping * (1 / of.events + 1 / usual)
        unsure = _of_sample(of.exposure, of.events, of.exposure, apart.sampled[0])
        unsure += _of_sample(of.usual_exposure, of.usual_events, base, apart.sampled[1])
        beyond = gain / clumped * chance / (chance + apart.natural**2 + unsure)
        expected = of.exposure * usual / base * elsewhere
        excess = of.events - expected
        gain = (of.events * np.log(factor) - excess) / clumped
    counts = (of.events >= EVENTS_MIN) & (of.exposure > 0) & (rest.exposure > _REST_MIN * total.exposure) & (factor > 1)
    is_apart = counts & (factor > apart.factor_min)
    return Evidence(np.where(counts, gain, 0.0), np.where(is_apart, beyond, -np.inf), excess, factor)


def prior_weight(events: Floats, expected: Floats, prior_events: float) -> Floats:
    """How many events the prior rate is worth, where it expects so many and there are so many.

    It is worth the least where more are seen than it can explain: what always fails is not drawn towards the others.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        against = _times_log(events, events / np.maximum(expected, 1e-12)) - (events - expected)
    is_in_conflict = (events > expected) & (against > _CONFLICT_NATS)
    return np.where(is_in_conflict, min(prior_events, PRIOR_EVENTS[0]), prior_events)


def in_clumps(factor: Floats, clumping: float) -> Floats:
    """By how much less events say that come in clumps than single ones do, where there are `factor` times as many as expected.

    The rate of large deviations (Cramér, 1938) of a Poisson count, divided by that of a compound Poisson count of ones and twos
    whose variance is `clumping` times its mean. Near a factor of 1 it is `clumping`, far from it 2: large counts are mostly made
    of twos. From a clumping of 2 on it is `clumping`.
    """
    twos = min(1.0, max(0.0, clumping - 1) / max(3 - clumping, 1e-9))
    if not 0 < twos < 1:
        return np.full_like(factor, clumping)
    ones, mean, far = 1 - twos, 1 + twos, np.maximum(factor, 1.001)
    tilt = (np.sqrt(np.square(ones) + 8 * twos * mean * far) - ones) / (4 * twos)
    compound = mean * far * np.log(tilt) - ones * (tilt - 1) - twos * (np.square(tilt) - 1)
    found: Floats = mean * (far * np.log(far) - far + 1) / compound
    return found


def _of_sample(exposure: Floats, events: Floats, base: Floats, each: float) -> Floats:
    """The variance of the log of `base`, of whose exposure views without events are a sample, and stand for `each` of as many.

    It is each² x their number, and one more than there are: of none, none is known.
    """
    return each * (np.maximum(exposure - events, 0.0) + each) / np.square(base + each)


def _common_factor(of: Quad, rest: Quad, usual: Floats, base: Floats) -> Floats:
    """By how much both changed, if by the same (Mantel and Haenszel)."""
    both, others = of.exposure + base, rest.exposure + rest.usual_exposure
    above = of.events * base / both + _share(rest.events * rest.usual_exposure, others)
    below = usual * of.exposure / both + _share(rest.usual_events * rest.exposure, others)
    return above / below


def _share(above: Floats, below: Floats) -> Floats:
    return np.where(below > 0, above / below, 0.0)


def _fit(events: Floats, exposure: Floats, usual: Floats, base: Floats, factor: Floats) -> Floats:
    """The log likelihood that of all events these are now, where the rate is multiplied by `factor`."""
    expected = factor * exposure
    return _times_log(events, expected / (expected + base)) + _times_log(usual, base / (expected + base))


def _best(events: Floats, usual: Floats) -> Floats:
    """The same for the factor that fits best."""
    return _times_log(events, events / (events + usual)) + _times_log(usual, usual / (events + usual))


def _times_log(count: Floats, share: Floats) -> Floats:
    return np.where(count > 0, count * np.log(share), 0.0)
