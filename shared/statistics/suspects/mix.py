"""Takes the mix of views out of their rates: exposure becomes the events that are usual for a view's values. Pure.

If viewers of a country watch more on a bad device than usual, the country is no suspect. So each view is expected to have the
usual rate of its values: a product of one factor for each value. Iterative proportional fitting (Deming and Stephan, 1940) fits
the factors to the usual events. What is left of a cohort's rate is what its values do not explain each alone.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from shared.statistics.suspects.counts import Counts, Floats, Side
from shared.statistics.suspects.likelihood import prior_weight

#: How often each dimension is fitted. Dimensions depend on each other, so one round is not enough.
_ROUNDS: Final = 4
#: A value's factor is drawn towards 1 as if by so many events.
_PRIOR_EVENTS: Final = (2.0, 100.0)


def without_mix(counts: Counts) -> Counts:
    """The same counts, where the exposure of each row is what it would be at the rate of all views, had it as many usual events."""
    usual = counts.usual
    cards = [len(values) for values in counts.values]
    overall = float(usual.events.sum()) / max(float(usual.exposure.sum()), 1e-9)
    if overall <= 0:
        return counts
    factors: list[Floats] = [np.ones(card) for card in cards]
    observed = usual.events / counts.event
    # numpy makes indices of codes at each call.
    lines = usual.codes.astype(np.intp)
    events: list[Floats] = [
        np.bincount(codes, observed, card).astype(np.float64, copy=False)
        for codes, card in zip(lines, cards, strict=True)
    ]
    expected = usual.exposure * (overall / counts.event)
    change = np.empty_like(expected)
    for _ in range(_ROUNDS):
        for place, (codes, card) in enumerate(zip(lines, cards, strict=True)):
            fitted: Floats = np.bincount(codes, expected, card).astype(np.float64, copy=False)
            plain = fitted / factors[place]
            drawn = prior_weight(events[place], plain, _prior(events[place], plain))
            # The factor as a whole is drawn towards 1, not the change of this round.
            wanted = (events[place] + drawn) / (plain + drawn)
            expected *= np.take(wanted / factors[place], codes, out=change, mode="clip")
            factors[place] = wanted
    now, usual = (_bounded(_weighted(side, factors), side, counts, overall) for side in (counts.now, usual))
    return replace(counts, now=now, usual=usual)


def _prior(events: Floats, plain: Floats) -> float:
    """1 / CV² of the factors beyond chance, events. `plain` is what is expected of each value without its factor."""
    excess = float((np.square(events - plain) - plain).sum())
    least, most = _PRIOR_EVENTS
    return min(most, max(least, float(np.square(plain).sum()) / excess)) if excess > 0 else most


def _weighted(side: Side, factors: list[Floats]) -> Side:
    exposure = side.exposure.copy()
    for codes, of_values in zip(side.codes, factors, strict=True):
        exposure *= np.take(of_values, codes)
    return replace(side, exposure=exposure)


def _bounded(mixed: Side, side: Side, counts: Counts, overall: float) -> Side:
    """Of a row no more is expected than there can be: values that were never seen together have no product that was.

    A row of counts has at most an event for its exposure, one of sums the largest that is seen.
    """
    if counts.event == 1:
        most = side.exposure / overall
    else:
        largest = max(float(each.events.max(initial=0.0)) for each in (counts.now, counts.usual))
        most = np.maximum(side.exposure, largest / overall)
    return replace(mixed, exposure=np.minimum(mixed.exposure, most))
