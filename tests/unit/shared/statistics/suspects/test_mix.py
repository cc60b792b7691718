"""Exposure without the mix of views: what each value explains of the usual rates is in it."""

import numpy as np
import pytest

from shared.statistics.suspects.counts import Cell, Counts, coded, of_cells
from shared.statistics.suspects.mix import without_mix

VIEWS = 60_000


def counted(rates: dict[tuple[str, str], float]) -> Counts:
    chance = np.random.default_rng(1)
    kinds = list(rates)
    drawn = [kinds[int(len(kinds) * one)] for one in chance.random(VIEWS)]
    columns: dict[str, list[str | None]] = {"cdn": [cdn for cdn, _ in drawn], "device": [device for _, device in drawn]}
    events = (chance.random(VIEWS) < np.array([rates[kind] for kind in drawn])).astype(float)
    measured = (events, np.ones(VIEWS))
    return coded(columns, columns, measured, measured)


def test_a_view_is_expected_to_fail_as_often_as_its_values_usually_do() -> None:
    rates = {("own", "tv"): 0.16, ("own", "phone"): 0.04, ("edge", "tv"): 0.08, ("edge", "phone"): 0.02}
    counts = counted(rates)
    overall = counts.usual.events.mean()

    usual = without_mix(counts).usual

    for (cdn, device), rate in rates.items():
        codes = [names.index(value) for names, value in zip(counts.values, (cdn, device), strict=True)]
        within = np.all([line == code for line, code in zip(usual.codes, codes, strict=True)], axis=0)
        assert usual.exposure[within].mean() * overall == pytest.approx(rate, rel=0.1)


def test_what_two_values_do_only_together_is_left() -> None:
    counts = counted({("own", "tv"): 0.2, ("own", "phone"): 0.02, ("edge", "tv"): 0.02, ("edge", "phone"): 0.02})
    usual = without_mix(counts).usual
    codes = [names.index(value) for names, value in zip(counts.values, ("own", "tv"), strict=True)]
    within = np.all([line == code for line, code in zip(usual.codes, codes, strict=True)], axis=0)
    overall = counts.usual.events.mean()

    assert usual.events[within].sum() > 1.05 * overall * usual.exposure[within].sum()
    for line in usual.codes:
        for code in np.unique(line):
            events, exposure = usual.events[line == code].sum(), usual.exposure[line == code].sum()
            assert events == pytest.approx(overall * exposure, rel=0.05)


def test_a_value_of_which_nothing_is_known_changes_nothing() -> None:
    columns: dict[str, list[str | None]] = {"cdn": ["own"] * 100, "title": ["old"] * 100}
    bad = np.array([1.0] * 10 + [0.0] * 90)
    now = {"cdn": ["own"] * 100, "title": ["new"] * 100}
    counts = coded(now, columns, (bad, np.ones(100)), (bad, np.ones(100)))

    assert without_mix(counts).now.exposure == pytest.approx(np.ones(100))


def test_without_usual_events_nothing_is_known() -> None:
    columns: dict[str, list[str | None]] = {"cdn": ["own"] * 100}
    counts = coded(columns, columns, (np.ones(100), np.ones(100)), (np.zeros(100), np.ones(100)))

    assert without_mix(counts) is counts


def test_of_a_view_no_more_is_expected_than_there_can_be() -> None:
    """Six values that each always fail were never seen together: their product is no expectation."""
    names = [f"d{number}" for number in range(6)]
    usual: dict[str, list[str | None]] = {name: ["good"] * 40_000 for name in names}
    events = np.zeros(40_000)
    for place, name in enumerate(names):
        rows = slice(200 * place, 200 * place + 200)
        usual[name][rows] = ["bad"] * 200
        events[rows] = 1.0
    events[30_000:30_400] = 1.0
    now: dict[str, list[str | None]] = {name: [*usual[name], "bad"] for name in names}
    bad = np.append(events, 1.0)
    counts = coded(now, usual, (bad, np.ones(40_001)), (events, np.ones(40_000)))
    overall = events.mean()

    mixed = without_mix(counts)

    assert mixed.now.exposure[-1] * overall == pytest.approx(1)
    assert mixed.now.exposure.sum() * overall == pytest.approx(bad.sum(), rel=0.1)


def test_of_a_long_view_no_larger_sum_is_expected_than_is_seen() -> None:
    """A title whose views of a second wait for 20 s, and one of them that is watched for hours."""
    chance = np.random.default_rng(2)
    titles: dict[str, list[str | None]] = {"title": ["calm"] * 5_000 + ["stalls"] * 100, "cdn": ["own", "edge"] * 2_550}
    waited = np.append(np.where(chance.random(5_000) < 0.1, 3_000.0, 0.0), np.full(100, 20_000.0))
    watched = np.append(np.full(5_000, 600_000.0), np.full(100, 1_000.0))
    long = np.append(watched[:-1], 4 * 3_600_000.0)
    counts = coded(titles, titles, (waited, long), (waited, watched), event=5_000.0)
    overall = waited.sum() / watched.sum()

    assert without_mix(counts).now.exposure[-1] <= max(long[-1], 20_000.0 / overall)


def test_cells_of_many_views_have_at_most_as_many_events_as_views() -> None:
    cells = [
        *(Cell((value, "good"), 0.0, 10, 900.0, 1_000) for value in ("a", "b")),
        *(Cell(("good", value), 0.0, 10, 900.0, 1_000) for value in ("a", "b")),
        Cell(("good", "good"), 300.0, 100_000, 300.0, 100_000),
        Cell(("a", "a"), 10.0, 10, 0.0, 0),
    ]
    counts = of_cells(("cdn", "device"), cells)
    overall = counts.usual.events.sum() / counts.usual.exposure.sum()

    mixed = without_mix(counts)

    assert np.all(mixed.now.exposure * overall <= counts.now.exposure * (1 + 1e-9))
