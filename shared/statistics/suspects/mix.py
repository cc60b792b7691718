"""Takes the mix of views out of their rates: exposure becomes the events that are usual for a view's values. Pure.

If viewers of a country watch more on a bad device than usual, the country is no suspect. So each view is expected to have the
usual rate of its values: a product of one factor for each value. Iterative proportional fitting (Deming and Stephan, 1940) fits
the factors to the usual events. What is left of a cohort's rate is what its values do not explain each alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from shared.statistics.suspects.counts import Counts, Floats, Side
from shared.statistics.suspects.joint import Joint, in_turn
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
    together = in_turn(cards)
    # numpy makes indices of places at each call.
    lines = [joint.places(usual.codes).astype(np.intp) for joint in together]
    events: list[Floats] = [
        sums
        for joint, line in zip(together, lines, strict=True)
        for sums in _by_each(joint, joint.summed(line, observed))
    ]
    expected = usual.exposure * (overall / counts.event)
    change = np.empty_like(expected)
    for _ in range(_ROUNDS):
        for joint, line in zip(together, lines, strict=True):
            # What one dimension changes is known of the next one without its rows: they have the same values.
            fitted, of_sums = joint.summed(line, expected).reshape(joint.shape), np.ones(joint.shape)
            for axis, place in enumerate(joint.dimensions):
                plain = joint.added_up(fitted.ravel(), [place]) / factors[place]
                drawn = prior_weight(events[place], plain, _prior(events[place], plain))
                # The factor as a whole is drawn towards 1, not the change of this round.
                wanted = (events[place] + drawn) / (plain + drawn)
                of_place = _along(wanted / factors[place], axis, joint)
                fitted *= of_place
                of_sums *= of_place
                factors[place] = wanted
            expected *= np.take(of_sums.ravel(), line, out=change, mode="clip")
    now, usual = (_bounded(_weighted(side, factors, together), side, counts, overall) for side in (counts.now, usual))
    return replace(counts, now=now, usual=usual)


def _prior(events: Floats, plain: Floats) -> float:
    """1 / CV² of the factors beyond chance, events. `plain` is what is expected of each value without its factor."""
    excess = float((np.square(events - plain) - plain).sum())
    least, most = _PRIOR_EVENTS
    return min(most, max(least, float(np.square(plain).sum()) / excess)) if excess > 0 else most


def _by_each(joint: Joint, sums: Floats) -> Iterator[Floats]:
    return (joint.added_up(sums, [place]) for place in joint.dimensions)


def _along(of_values: Floats, axis: int, joint: Joint) -> Floats:
    """A number of each value of a dimension, beside the values of the others."""
    return of_values.reshape([-1 if place == axis else 1 for place in range(len(joint.shape))])


def _weighted(side: Side, factors: list[Floats], together: Sequence[Joint]) -> Side:
    exposure = side.exposure.copy()
    for joint in together:
        of_sums = np.ones(joint.shape)
        for axis, place in enumerate(joint.dimensions):
            of_sums *= _along(factors[place], axis, joint)
        exposure *= np.take(of_sums.ravel(), joint.places(side.codes))
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
