"""Two methods of others, written from their papers, over the same hours. Neither has a line: each ranks what it has.

Both are given what is expected of each value and leaf: its views times its usual rate, as a forecast. A leaf of a few views has no
usual rate of its own: the leaves' forecasts are products of the usual rates of their values (main effects).
"""

import itertools
import math
from typing import Final

import numpy as np

from shared.statistics.suspects.counts import Counts, Floats

Found = tuple[tuple[int, int], ...]
#: Adtributor's thresholds, as its paper has them: of a whole explanation and of one element.
_EXPLAINED: Final = 0.67
_EXPLAINED_BY_ONE: Final = 0.1
#: RiskLoc: an element must explain so much of the deviation of the abnormal leaves.
_EXPLAINED_MIN: Final = 0.15
_LAYERS: Final = 4


def adtributor(counts: Counts, *, most: int = 3) -> list[Found]:
    """Bhagwan et al., Adtributor (NSDI 2014): of each dimension the elements of most surprise that explain the change; the
    dimension whose elements surprise most first. One dimension is all it finds.
    """
    total, total_forecast = float(counts.now.events.sum()), float(_forecast_of_values(counts, 0).sum())
    change = total - total_forecast
    found: list[tuple[float, list[Found]]] = []
    for place, values in enumerate(counts.values):
        real = np.bincount(counts.now.codes[place], counts.now.events, len(values))
        forecast = _forecast_of_values(counts, place)
        surprise = _jensen_shannon(forecast / max(total_forecast, 1e-9), real / max(total, 1e-9))
        explains = (real - forecast) / change if change else np.zeros(len(values))
        elements: list[Found] = []
        explained = surprised = 0.0
        for code in np.argsort(-surprise):
            if explains[code] > _EXPLAINED_BY_ONE and code:
                elements.append(((place, int(code)),))
                explained += float(explains[code])
                surprised += float(surprise[code])
            if explained > _EXPLAINED:
                break
        if explained > _EXPLAINED:
            found.append((surprised, elements))
    found.sort(key=lambda one: -one[0])
    return [element for _, elements in found for element in elements][:most]


def riskloc(counts: Counts, *, most: int = 3) -> list[Found]:
    """Kalander, RiskLoc (arXiv 2205.10004): leaves on two sides of a cut, weighted by how far they deviate; elements by the risk
    that they are abnormal, layer by layer; each that is found leaves its leaves out of the next search.
    """
    codes, real, forecast = _leaves(counts)
    deviation = 2 * (forecast - real) / np.maximum(forecast + real, 1e-9)
    # Normal leaves deviate to both sides alike: beyond the largest of the other side lies what is abnormal.
    cut = -float(np.quantile(deviation[deviation > 0], 0.99)) if np.any(deviation > 0) else 0.0
    is_abnormal = deviation < max(cut, -1.9)
    weights = np.where(is_abnormal, np.abs(deviation), np.minimum(1.0, np.abs(deviation - cut) / max(abs(cut), 1e-9)))
    found: list[Found] = []
    is_left = np.ones(real.size, bool)
    while len(found) < most:
        element = _riskiest(
            counts, codes[:, is_left], (real - forecast)[is_left], weights[is_left], is_abnormal[is_left]
        )
        if element is None:
            break
        found.append(element)
        is_left &= ~np.all([codes[place] == code for place, code in element], axis=0)
    return found


def _riskiest(
    counts: Counts, codes: np.ndarray, excess: Floats, weights: Floats, is_abnormal: np.ndarray
) -> Found | None:
    sizes = [len(values) for values in counts.values]
    to_explain = float(excess[is_abnormal].sum())
    best: tuple[float, Found] | None = None
    for layer in range(1, _LAYERS + 1):
        for places in itertools.combinations(range(len(sizes)), layer):
            key, size = np.zeros(codes.shape[1], np.int64), math.prod(sizes[place] for place in places)
            for place in places:
                key = key * sizes[place] + codes[place]
            listed, inverse = np.unique(key, return_inverse=True) if size > 1_000_000 else (np.arange(size), key)
            abnormal = np.bincount(inverse, weights * is_abnormal, listed.size)
            whole = np.bincount(inverse, weights, listed.size)
            explains = np.bincount(inverse, excess * is_abnormal, listed.size) / max(to_explain, 1e-9)
            risk = np.where(explains >= _EXPLAINED_MIN, abnormal / (whole + 1), 0.0)
            number = int(np.argmax(risk))
            if risk[number] > 0 and (best is None or risk[number] > best[0]):
                values = np.unravel_index(int(listed[number]), [sizes[place] for place in places])
                best = (float(risk[number]), tuple(zip(places, map(int, values), strict=True)))
    return None if best is None else best[1]


def _usual_rates(counts: Counts, place: int) -> Floats:
    size = len(counts.values[place])
    overall = counts.usual.events.sum() / max(counts.usual.exposure.sum(), 1.0)
    events = np.bincount(counts.usual.codes[place], counts.usual.events, size)
    exposure = np.bincount(counts.usual.codes[place], counts.usual.exposure, size)
    rates: Floats = (events + 1) / (exposure + 1 / max(overall, 1e-9))
    return rates


def _forecast_of_values(counts: Counts, place: int) -> Floats:
    size = len(counts.values[place])
    found: Floats = np.bincount(counts.now.codes[place], counts.now.exposure, size) * _usual_rates(counts, place)
    return found


def _leaves(counts: Counts) -> tuple[np.ndarray, Floats, Floats]:
    """Combinations of values that there are, with bad views and how many are expected."""
    overall = counts.usual.events.sum() / max(counts.usual.exposure.sum(), 1.0)
    rates = np.full(counts.now.events.size, overall)
    for place in range(len(counts.values)):
        rates *= (_usual_rates(counts, place) / overall)[counts.now.codes[place]]
    key = np.zeros(counts.now.events.size, np.int64)
    for place, values in enumerate(counts.values):
        key = key * len(values) + counts.now.codes[place]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    forecast = np.minimum(rates, 1.0) * counts.now.exposure
    return (
        counts.now.codes[:, first].astype(np.int64),
        np.bincount(inverse, counts.now.events).astype(float),
        np.bincount(inverse, forecast).astype(float),
    )


def _jensen_shannon(p: Floats, q: Floats) -> Floats:
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = 0.5 * (
            np.where(p > 0, p * np.log(p / middle), 0.0) + np.where(q > 0, q * np.log(q / middle), 0.0)
        )
    return found
