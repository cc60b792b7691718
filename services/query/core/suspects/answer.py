"""The answer to a question for suspects: its shape as the API documents it, and how it is made of figures. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from services.query.core.answer import About, Figure, Span
from services.query.core.filters import Filter
from services.query.core.suspects.measured import Measured, Threshold
from services.query.core.suspects.question import Against, SuspectsQuestion
from shared.schemas.live import UNKNOWN
from shared.statistics.suspects.counts import KNOWN
from shared.statistics.suspects.likelihood import Quad
from shared.statistics.suspects.suspect import Judged, Searched, judgements
from shared.statistics.suspects.suspect import Suspect as Found

Row = Mapping[str, Any]
#: Now and usually.
Rows = tuple[Row, Row]


class SuspectCondition(msgspec.Struct, frozen=True):
    """One part of a cohort's description. `value` null: unknown; `label` is the same to be shown."""

    dimension: str
    value: str | None
    label: str


class Suspect(msgspec.Struct, frozen=True):
    """A cohort that explains the change: views for which all conditions hold."""

    conditions: list[SuspectCondition]
    #: What selects its views, for the other paths. It leaves out those of suspects before it.
    filter: Filter
    #: The metric of the cohort and of all other views, now and usually.
    figure: Figure
    usual: Figure
    rest: Figure
    rest_usual: Figure
    #: Events (bad views; for a sum its unit, as ms) beyond those expected, had the cohort changed as the rest has.
    excess: float
    #: How many times more than the rest it changed; against the rest, how many times worse it is.
    factor: float
    #: By how much its evidence is beyond chance, natural change and the cost of its description: nats.
    surprise: float


class Looked(msgspec.Struct, frozen=True):
    """How many views were looked at to find suspects. All figures are of all views."""

    views: int
    sampled: int


class Suspects(msgspec.Struct, frozen=True):
    """Suspects as they were asked to be ranked; none where nothing is worse than chance and natural change or difference make."""

    about: About
    baseline: Span
    #: What cohorts are compared with: the baseline, or all other views of the range where the baseline says too little.
    against: Against
    metric: str
    title: str
    unit: str
    #: Of a value: which of its views are bad, of whose share the figures are. Null: the metric is a ratio.
    threshold: Threshold | None
    dimensions: list[str]
    #: The metric of all views, now and usually.
    figure: Figure
    usual: Figure
    read: Looked
    suspects: list[Suspect]
    #: Cohorts near the line that are no suspects, the likeliest first: chance or the usual changes may explain each of them. None
    #: has views in common with another one, or with a suspect.
    possible: list[Suspect]


@dataclass(frozen=True)
class Outcome:
    """What was found, the figures of all that is listed, what they say of it, and which places of the list are suspects, or
    possible."""

    searched: Searched
    rows: Rows
    said: Sequence[Judged]
    places: Sequence[int]
    possible: Sequence[int] = ()


def filters_of(searched: Searched) -> list[Filter]:
    """What selects each cohort's views, of those near the line too: they are in no suspect before it."""
    made: list[Filter] = []
    for number, one in enumerate(searched.listed):
        own = [Filter(dimension=name, values=(value,)) for name, value in one.values]
        before = [Filter(none_of=_cohort(other)) for other in searched.found[:number] if not _are_apart(one, other)]
        made.append(_all([*own, *before]))
    return made


def cohorts_of(searched: Searched) -> tuple[Filter, ...]:
    """All that is listed, each with all of its views."""
    return tuple(map(_cohort, searched.listed))


def left_out_of(searched: Searched) -> list[int]:
    """Of each cohort that is listed the bits of those before it whose views are not in it: as `filters_of`."""
    return [
        sum(1 << place for place, other in enumerate(searched.found[:number]) if not _are_apart(one, other))
        for number, one in enumerate(searched.listed)
    ]


def said_of(question: SuspectsQuestion, searched: Searched, rows: Rows) -> list[Judged]:
    """What the figures of all views say of each cohort that is listed.

    The search cuts the largest values of a sum, figures do not: its own judgement is carried over to all events.
    """
    if not question.measured.is_count:
        return [
            Judged(
                one.score, one.surprise, one.excess / one.events * float(rows[0][f"events_{place}"] or 0), one.factor
            )
            for place, one in enumerate(searched.listed)
        ]
    quads = [_quad(question, rows, f"_{number}") for number in range(len(searched.listed))]
    return judgements(searched, quads, _quad(question, rows, ""))


def composed(question: SuspectsQuestion, outcome: Outcome, read: Looked, about: About) -> Suspects:
    """The answer. The question says what was compared with what."""
    assert question.against is not None
    measured = question.measured
    selecting = filters_of(outcome.searched)
    suspects, possible = (
        [_suspect(question, outcome, place, selecting[place]) for place in places]
        for places in (outcome.places, outcome.possible)
    )
    return Suspects(
        about=about,
        baseline=Span(question.usual.range.from_ms, question.usual.range.to_ms),
        against=question.against,
        metric=measured.name,
        title=measured.title,
        unit=measured.unit,
        threshold=measured.threshold,
        dimensions=[one.name for one in question.now.by],
        figure=_figure(measured, outcome.rows[0], ""),
        usual=_figure(measured, outcome.rows[1], ""),
        read=read,
        suspects=sorted(suspects, key=lambda one: getattr(one, question.order_by), reverse=True),
        possible=possible,
    )


def _suspect(question: SuspectsQuestion, outcome: Outcome, place: int, selecting: Filter) -> Suspect:
    measured, rows, suffix = question.measured, outcome.rows, f"_{place}"
    one, said = outcome.searched.listed[place], outcome.said[place]
    return Suspect(
        conditions=[SuspectCondition(name, value, UNKNOWN if value is None else value) for name, value in one.values],
        filter=selecting,
        figure=_figure(measured, rows[0], suffix),
        usual=_figure(measured, rows[1], suffix),
        rest=_rest(measured, rows[0], suffix),
        rest_usual=_rest(measured, rows[1], suffix),
        excess=said.excess,
        factor=said.factor,
        surprise=said.surprise,
    )


def _quad(question: SuspectsQuestion, rows: Rows, suffix: str) -> Quad:
    of = Quad(*(np.array(float(row[name + suffix] or 0)) for row in rows for name in ("events", "exposure")))
    if question.against == "usual":
        return of
    # Beside the rest each is expected to have the rate of all.
    rate = float(rows[0]["events"] or 0) / max(1.0, float(rows[0]["exposure"] or 0))
    return Quad(of.events, of.exposure, KNOWN * rate * of.exposure, KNOWN * of.exposure)


def _figure(measured: Measured, row: Row, suffix: str) -> Figure:
    value = measured.value(row[f"events{suffix}"] or 0, row[f"exposure{suffix}"] or 0)
    return Figure(value, int(row[f"views{suffix}"]))


def _rest(measured: Measured, row: Row, suffix: str) -> Figure:
    events, exposure = ((row[name] or 0) - (row[f"{name}{suffix}"] or 0) for name in ("events", "exposure"))
    return Figure(measured.value(events, exposure), int(row["views"]) - int(row[f"views{suffix}"]))


def _cohort(one: Found) -> Filter:
    return _all([Filter(dimension=name, values=(value,)) for name, value in one.values])


def _all(parts: Sequence[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else Filter(all_of=tuple(parts))


def _are_apart(one: Found, other: Found) -> bool:
    """Whether no view is in both: they want different values of a dimension."""
    mine, theirs = dict(one.values), dict(other.values)
    return any(name in theirs and theirs[name] != value for name, value in mine.items())
