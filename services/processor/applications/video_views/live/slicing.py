"""Slices from cohorts: by each dimension and each pair of them, the largest values by name, the rest together. Pure."""

import functools
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

from shared.schemas.live import OTHER, PAIR_SEPARATOR, PAIR_VALUES_MAX, SLICE_VALUES_MAX, UNKNOWN, LiveSlice

#: The fields of a slice, in the order in which figures are given here.
FIELDS: Final = LiveSlice.__struct_fields__
_VIEWERS: Final = FIELDS.index("viewers_now")
_STARTED: Final = FIELDS.index("views_started")
_FINISHED: Final = FIELDS.index("views_finished")

Figures = Sequence[int]


def slices_of(
    dimensions: tuple[str, ...], cohorts: Iterable[tuple[Sequence[str] | None, Figures]], whole: Figures
) -> dict[str, LiveSlice]:
    """By name the slices that are not zero. What of `whole` no cohort has counts as `UNKNOWN`. Figures are as `FIELDS`.

    The slices of each dimension, and of each pair, add up to `whole`.
    """
    rest = list(whole)
    groups = _groups(dimensions)
    sums: list[dict[str, list[int]]] = [{} for _ in groups]
    unknown = [UNKNOWN] * len(dimensions)
    for values, figures in cohorts:
        # Most cohorts of most buckets have none.
        changes = [(at, figure) for at, figure in enumerate(figures) if figure]
        if changes:
            for at, figure in changes:
                rest[at] -= figure
            _add(sums, groups, unknown if values is None else [value or UNKNOWN for value in values], changes)
    _add(sums, groups, unknown, [(at, figure) for at, figure in enumerate(rest) if figure])
    found: dict[str, LiveSlice] = {}
    for (group, name), values_of_group in zip(groups, sums, strict=True):
        if not values_of_group:
            continue
        of_none = PAIR_SEPARATOR.join([UNKNOWN] * len(group))
        of_others = PAIR_SEPARATOR.join([OTHER] * len(group))
        limit = SLICE_VALUES_MAX if len(group) == 1 else PAIR_VALUES_MAX
        for value, total in _largest(values_of_group, limit, of_none, of_others).items():
            if any(total):
                found[f"{name}={value}"] = LiveSlice(*total)
    return found


@functools.cache
def _groups(dimensions: tuple[str, ...]) -> list[tuple[tuple[int, ...], str]]:
    """Each dimension and each pair of them: where they stand, and their name."""
    places: list[tuple[int, ...]] = [(at,) for at in range(len(dimensions))]
    places += combinations(range(len(dimensions)), 2)
    return [(group, ",".join(dimensions[at] for at in group)) for group in places]


def _add(
    sums: list[dict[str, list[int]]],
    groups: list[tuple[tuple[int, ...], str]],
    values: Sequence[str],
    changes: list[tuple[int, int]],
) -> None:
    if not changes:
        return
    for (group, _), of_group in zip(groups, sums, strict=True):
        value = values[group[0]] if len(group) == 1 else values[group[0]] + PAIR_SEPARATOR + values[group[1]]
        total = of_group.get(value)
        if total is None:
            total = of_group[value] = [0] * len(FIELDS)
        for at, figure in changes:
            total[at] += figure


def _largest(sums: dict[str, list[int]], limit: int, of_none: str, of_others: str) -> dict[str, list[int]]:
    """The `limit` values with the most viewers, then with the most starts and finishes; the others together."""
    apart = {value: sums.pop(value) for value in (of_none, of_others) if value in sums}
    if len(sums) > limit:
        order = sorted(
            sums,
            key=lambda value: (-sums[value][_VIEWERS], -sums[value][_STARTED] - sums[value][_FINISHED], value),
        )
        others = apart.setdefault(of_others, [0] * len(FIELDS))
        for value in order[limit:]:
            for at, figure in enumerate(sums.pop(value)):
                others[at] += figure
    return {**dict(sorted(sums.items())), **apart}
