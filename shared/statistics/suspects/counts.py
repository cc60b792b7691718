"""The input of the search: events and exposure of groups of views, now and usually, by the values of dimensions. Pure.

A metric is events over exposure: failed views over views, or ms of rebuffering over ms watched. A row is one view, or all views
that have the same values. Values are numbers here: the place of a value in `Counts.values`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

Value = str | None
Codes = NDArray[np.uint8]
Floats = NDArray[np.float64]
#: Of each row the place of its value among those that are known.
Places = NDArray[np.int32]

DIMENSIONS_MAX: Final = 12
#: Values of one dimension that can be suspects: those with the most events. All others share `OTHER`. A code has eight bits.
VALUES_MAX: Final = 250
#: The code of all values that are no suspects.
OTHER: Final = 0
#: Beside the rest, what is expected is known and not measured: as if of so many times the views.
KNOWN: Final = 100.0


@dataclass(frozen=True)
class Side:
    """The rows of one range. `codes` has a line a dimension and a column a row."""

    codes: Codes
    #: By row; at least as large as zero.
    events: Floats
    exposure: Floats
    #: What the exposure of a row without events is, where such rows are a sample of views; 0 where all views are there.
    sampled: float = 0.0


@dataclass(frozen=True)
class Counts:
    """Rows of two ranges. `values[d][c]` is the value that code c of dimension d means; that of `OTHER` means nothing."""

    dimensions: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    now: Side
    usual: Side
    #: How much of an event is one independent observation: 1 where a view is an event or none; for sums `clump`.
    event: float = 1.0
    #: Whether `usual` says nothing, and the range itself is expected to have the rate of all in every view: see `beside_rest`.
    is_beside_rest: bool = False


@dataclass(frozen=True)
class Cell:
    """One combination of values: events and exposure now and usually."""

    values: tuple[Value, ...]
    events: float
    exposure: float
    usual_events: float
    usual_exposure: float


def of_cells(dimensions: Sequence[str], cells: Iterable[Cell], *, event: float = 1.0) -> Counts:
    """Counts of combinations of values, each once, as an application keeps them."""
    listed = list(cells)
    columns: dict[str, list[Value]] = {
        name: [cell.values[place] for cell in listed] for place, name in enumerate(dimensions)
    }
    return coded(
        columns,
        columns,
        (np.array([cell.events for cell in listed], float), np.array([cell.exposure for cell in listed], float)),
        (
            np.array([cell.usual_events for cell in listed], float),
            np.array([cell.usual_exposure for cell in listed], float),
        ),
        event=event,
    )


def coded(
    now: Mapping[str, Sequence[Value]],
    usual: Mapping[str, Sequence[Value]],
    measured: tuple[Floats, Floats],
    measured_usually: tuple[Floats, Floats],
    *,
    event: float = 1.0,
) -> Counts:
    """Counts of rows whose values are texts, by dimension; `measured` are events and exposure of each row."""
    numbers: list[dict[Value, int]] = []
    lines: tuple[list[Places], list[Places]] = ([], [])
    for name in now:
        known: dict[Value, int] = {}
        for line, column in zip(lines, (now[name], usual[name]), strict=True):
            line.append(np.array([known.setdefault(value, len(known)) for value in column], np.int32))
        numbers.append(known)
    return numbered(tuple(now), [tuple(known) for known in numbers], lines, measured, measured_usually, event=event)


def numbered(
    dimensions: tuple[str, ...],
    values: Sequence[Sequence[Value]],
    lines: tuple[Sequence[Places], Sequence[Places]],
    measured: tuple[Floats, Floats],
    measured_usually: tuple[Floats, Floats],
    *,
    event: float = 1.0,
    sampled: tuple[float, float] = (0.0, 0.0),
) -> Counts:
    """Counts of rows whose values are numbers already: places in `values`. Keeps the values with the most events now."""
    if not 0 < len(dimensions) <= DIMENSIONS_MAX:
        raise ValueError(f"between one and {DIMENSIONS_MAX} dimensions")
    kept: list[tuple[Value, ...]] = []
    codes: tuple[list[Codes], list[Codes]] = ([], [])
    for place, known in enumerate(values):
        # Without rows numpy counts in whole numbers.
        events, exposure = (
            np.bincount(lines[0][place], weights, len(known)).astype(np.float64, copy=False) for weights in measured
        )
        order = _most(known, events, exposure)
        code_of = np.zeros(len(known), np.uint8)
        code_of[order] = np.arange(1, len(order) + 1)
        kept.append((None, *(known[number] for number in order)))
        for line, given in zip(codes, lines, strict=True):
            line.append(np.take(code_of, given[place]))
    now, usual = (
        Side(np.stack(line) if line else np.zeros((0, len(of[0])), np.uint8), *of, each)
        for line, of, each in zip(codes, (measured, measured_usually), sampled, strict=True)
    )
    return Counts(dimensions, tuple(kept), now, usual, event)


def _most(known: Sequence[Value], events: Floats, exposure: Floats) -> list[int]:
    """The places of the values that are kept, those with the most events and exposure first.

    By name last: the same rows make the same codes, in any order.
    """
    places = np.lexsort((-exposure, -events))
    if len(known) > VALUES_MAX:
        last = places[VALUES_MAX - 1]
        is_tied = (events[places] == events[last]) & (exposure[places] == exposure[last])
        places = places[is_tied | (np.arange(places.size) < VALUES_MAX)]
    return sorted(
        places.tolist(),
        key=lambda place: (-events[place], -exposure[place], known[place] is not None, known[place] or ""),
    )[:VALUES_MAX]


def beside_rest(counts: Counts) -> Counts:
    """The same rows now, where nothing earlier is known: a cohort is expected to be as all views together are."""
    return replace(counts, is_beside_rest=True)


def clump(events: Floats) -> float:
    """How large one independent observation of a sum is: Σx² / Σx, as the variance of a compound Poisson sum is to its mean."""
    total = float(events.sum())
    return float(np.square(events).sum()) / total if total > 0 else 1.0
