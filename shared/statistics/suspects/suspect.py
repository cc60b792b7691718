"""A cohort that explains a change, and its confirmation by the counts of all views where a sample was searched. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from shared.statistics.suspects.counts import Value
from shared.statistics.suspects.likelihood import Apart, Quad, evidence

#: By how much the evidence must be beyond natural change and the cost of the description, nats.
LINE: Final = 3.0


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
    basis: Basis


@dataclass(frozen=True)
class Searched:
    """The suspects, the best explanation first, and cohorts that are nearly so: of those all views may say more than a sample."""

    found: list[Suspect]
    near: list[Suspect]

    @property
    def listed(self) -> list[Suspect]:
        """The suspects, then those near the line."""
        return [*self.found, *self.near]

    def to_be_counted_again(self, places: Sequence[int]) -> "Searched | None":
        """What is listed at these places, where something that was found is not among them; else None.

        Its views are no longer left out of those after it, so their counts are others.
        """
        if {*range(len(self.found))} <= {*places}:
            return None
        return Searched([self.listed[place] for place in places], [])


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
    found = evidence(own, whole, np.asarray(basis.prior_rate), basis.apart)
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


def confirmed(searched: Searched, said: Sequence[Judged]) -> list[int]:
    """Which cohorts of a sample are suspects by the counts of all views: places in `searched.listed`.

    At most one of those near the line is, the best: the others may have views in common with it.
    """
    above = [place for place, one in enumerate(said) if one.is_suspect]
    found, near = ([one for one in above if (one < len(searched.found)) == is_found] for is_found in (True, False))
    return [*found, *sorted(near, key=lambda place: -said[place].score)[:1]]
