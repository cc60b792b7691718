"""A cohort that explains a change, and its confirmation by the counts of all views where a sample was searched. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from shared.statistics.suspects.counts import Value
from shared.statistics.suspects.likelihood import Apart, Quad, evidence

#: By how much the evidence must be beyond natural change and the cost of the description, nats.
LINE: Final = 3.0
#: What is above this, and not above the line, is possible.
NEAR: Final = -5.0
#: What a search gives a chance to be either by the counts of all views. A sample says less than these by several nats.
COUNTED: Final = -10.0
#: So many possible cohorts are named.
POSSIBLE_MAX: Final = 3


@dataclass(frozen=True)
class Basis:
    """What a cohort was judged by."""

    #: The usual rate that it is thought to have before it is measured, events by exposure without mix.
    prior_rate: float
    apart: Apart
    #: Of its description, nats.
    cost: float
    #: How large one independent observation of a sum is (`Counts.event`).
    event: float
    #: What its exposure without mix is to its exposure, now and usually; and the same of all rows.
    mix: tuple[float, float]
    mix_of_all: tuple[float, float]


@dataclass(frozen=True)
class Suspect:
    """A cohort that explains a change: all that have these values. Events are in the metric's own unit."""

    values: tuple[tuple[str, Value], ...]
    events: float
    exposure: float
    usual_events: float
    usual_exposure: float
    #: Events beyond those expected, had it changed as the rest has.
    excess: float
    #: How many times more than the rest it changed.
    factor: float
    #: By how much its evidence is beyond chance, natural change and the costs of its description, nats.
    surprise: float
    #: By what it is ranked, nats.
    score: float
    basis: Basis


@dataclass(frozen=True)
class Searched:
    """The suspects, the best explanation first, and cohorts that are nearly so: of those all views may say more than a sample."""

    found: list[Suspect]
    near: list[Suspect]
    #: What was found in a sample, and is no suspect by all views.
    denied: list[Suspect] = field(default_factory=list)

    @property
    def listed(self) -> list[Suspect]:
        """The suspects, then those near the line, then what is none."""
        return [*self.found, *self.near, *self.denied]

    def places_in(self, other: "Searched") -> list[int]:
        """Where each of those listed is listed in the other one, which has the same."""
        places = {id(one): place for place, one in enumerate(other.listed)}
        return [places[id(one)] for one in self.listed]

    def to_be_counted_again(self, places: Sequence[int]) -> "Searched | None":
        """The same with what is listed at these places as found, where something that was found is not among them; else None.

        Its views are no longer left out of those after it, so their counts are others. It is never found again: each time more
        is denied.
        """
        listed, found = self.listed, range(len(self.found))
        denied = [place for place in found if place not in places]
        if not denied:
            return None
        near = [place for place in range(len(self.found), len(self.found) + len(self.near)) if place not in places]
        return Searched(
            [listed[place] for place in places],
            [listed[place] for place in near],
            [*self.denied, *(listed[place] for place in denied)],
        )


@dataclass(frozen=True)
class Judged:
    """What counts say of a cohort."""

    #: By what it is ranked, nats.
    score: float
    #: As those of `Suspect`.
    surprise: float
    excess: float
    factor: float

    @property
    def is_suspect(self) -> bool:
        """Whether it is above the line."""
        return self.surprise > LINE


def judged(basis: Basis, of: Quad, total: Quad) -> Judged:
    """What these counts say, in the terms of a search. `total` has no views of suspects before it."""
    own, whole = (
        Quad(one.events / basis.event, one.exposure * now, one.usual_events / basis.event, one.usual_exposure * usual)
        for one, (now, usual) in ((of, basis.mix), (total, basis.mix_of_all))
    )
    found = evidence(own, whole, np.asarray(basis.prior_rate), replace(basis.apart, sampled=(0.0, 0.0)))
    return Judged(
        float(found.gain) - basis.cost,
        float(found.beyond) - basis.cost,
        float(found.excess) * basis.event,
        float(found.factor),
    )


def judgements(searched: Searched, quads: Sequence[Quad], total: Quad) -> list[Judged]:
    """What the counts of all views say of each cohort in `searched.listed`, beside the views that those found before it leave.

    `quads` has the counts of each, without the views of those found before it, and `total` those of all views.
    """
    said = []
    for place, one in enumerate(searched.listed):
        said.append(judged(one.basis, quads[place], total))
        if place < len(searched.found):
            total -= quads[place]
    return said


def confirmed(searched: Searched, said: Sequence[Judged], together: Sequence[int]) -> list[int]:
    """Which cohorts of a sample are suspects by the counts of all views: places in `searched.listed`.

    Of those near the line, whose views may be others' too, the best, and what has no view in common with it. `together` has of
    each cohort that is listed the bits of those with which it has views in common.
    """
    above = [place for place, one in enumerate(said) if one.is_suspect]
    found = [place for place in above if place < len(searched.found)]
    near = [place for place in above if 0 <= place - len(searched.found) < len(searched.near)]
    return [*found, *_without_overlap(near, [], said, together)]


def possible(
    searched: Searched, said: Sequence[Judged], places: Sequence[int], together: Sequence[int], most: int = POSSIBLE_MAX
) -> list[int]:
    """Which cohorts are near the line but not above it, the best explanation first: places in `searched.listed`.

    None has views in common with another one, or with a suspect; `places` has those. Nothing says that any of them is a cause.
    """
    near = [
        place
        for place, one in enumerate(said)
        if place >= len(searched.found) and not one.is_suspect and one.surprise > NEAR
    ]
    return _without_overlap(near, places, said, together)[:most]


def _without_overlap(
    near: Sequence[int], before: Sequence[int], said: Sequence[Judged], together: Sequence[int]
) -> list[int]:
    """The best first, without what has views in common with one before it."""
    chosen: list[int] = []
    for place in sorted(near, key=lambda place: -said[place].score):
        if not any(together[place] >> other & 1 for other in (*before, *chosen)):
            chosen.append(place)
    return chosen
