"""Suspects over made traffic: the cohort that was made worse is named, as shortly as it can be, and nothing else is."""

from dataclasses import replace

import numpy as np
import pytest

from shared.statistics.suspects.counts import (
    VALUES_MAX,
    Cell,
    Counts,
    Floats,
    Side,
    beside_rest,
    clump,
    coded,
    numbered,
    of_cells,
)
from shared.statistics.suspects.sampling import Sampling
from shared.statistics.suspects.search import NEAR_MAX, Search, searched, suspects
from shared.statistics.suspects.suspect import COUNTED, LINE
from tests.unit.shared.statistics.suspects.traffic import (
    CDNS,
    Columns,
    Range,
    counted,
    is_of,
    named,
    rounded,
    those_within,
    traffic,
)

USUAL = traffic(1, 30_000, 0.02)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "cohort",
    [
        {"cdn": "own"},
        {"asn": "3209"},
        {"cdn": "fastly", "country": "DE"},
        {"cdn": "fastly", "asn": "3320", "player_version": "app 1"},
        {"cdn": "akamai", "country": "DE", "player_version": "web 1"},
    ],
)
def test_the_cohort_that_became_worse_is_the_only_suspect(cohort: dict[str, str]) -> None:
    found = suspects(counted(traffic(2, 20_000, 0.02, 6, is_of(**cohort)), USUAL))

    assert named(found) == [cohort]
    assert 4 < found[0].factor < 9
    assert found[0].excess == pytest.approx(found[0].events * 5 / 6, rel=0.15)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("worse", "said"),
    [
        # Luxembourg has one network, and TVs have one player: the same views, so the coarser word.
        ({"asn": "6661"}, {"country": "LU"}),
        ({"player_version": "tv 1"}, {"device": "tv"}),
        # A network says its country, a version its device.
        ({"asn": "3215", "country": "FR"}, {"asn": "3215"}),
        ({"player_version": "app 2", "device": "phone", "cdn": "fastly"}, {"player_version": "app 2", "cdn": "fastly"}),
    ],
)
def test_the_shortest_and_coarsest_description_is_chosen(worse: dict[str, str], said: dict[str, str]) -> None:
    found = suspects(counted(traffic(3, 30_000, 0.03, 5, is_of(**worse)), USUAL))

    assert named(found)[:1] == [said]


NOTHING = Range({name: [] for name in USUAL.columns}, np.zeros(0))


@pytest.mark.parametrize("views", [600, 20_000])
@pytest.mark.parametrize("cohort", [{"cdn": "fastly"}, {"cdn": "akamai", "asn": "3320", "player_version": "app 1"}])
def test_where_nothing_is_known_of_before_a_cohort_stands_out_from_the_rest(cohort: dict[str, str], views: int) -> None:
    now = traffic(2, views, 0.08, 9, is_of(**cohort))

    assert suspects(counted(now, NOTHING)) == []
    found = suspects(beside_rest(counted(now, NOTHING)))

    assert named(found) == [cohort]
    within = those_within(now.columns, is_of(**cohort))
    rates = [float(now.events[part].mean()) for part in (within, ~within)]
    assert found[0].factor == pytest.approx(rates[0] / rates[1], rel=0.1)
    assert found[0].excess == pytest.approx(within.sum() * (rates[0] - rates[1]), rel=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_cohorts_that_differ_as_cohorts_do_are_nobodys_beside_the_rest(seed: int) -> None:
    now = traffic(20 + seed, 20_000, 0.04, 1.4, is_of(device="tv"))

    assert suspects(beside_rest(counted(now, NOTHING))) == []


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_suspect_where_nothing_became_worse(seed: int) -> None:
    assert suspects(counted(traffic(10 + seed, 20_000, 0.02), USUAL)) == []


@pytest.mark.thorough
def test_a_change_of_everything_and_another_mix_of_viewers_are_nobodys() -> None:
    everything = traffic(4, 20_000, 0.06)
    phones = traffic(5, 40_000, 0.02)
    kept = [number for number, device in enumerate(phones.columns["device"]) if device == "phone" or number % 4 == 0]
    other_mix = Range(
        {name: [column[number] for number in kept] for name, column in phones.columns.items()}, phones.events[kept]
    )

    assert suspects(counted(everything, USUAL)) == []
    assert suspects(counted(other_mix, USUAL)) == []


def test_another_mix_within_a_cohort_names_no_wider_one() -> None:
    """Of the views on akamai three times as many come from a television, which always fails more often."""
    chance = np.random.default_rng(12)

    def of(views: int, televisions: float) -> Range:
        columns: Columns = {"cdn": [], "device": [], "country": []}
        rates = np.zeros(views)
        for number in range(views):
            cdn = CDNS[int(3 * chance.random())]
            is_tv = chance.random() < (televisions if cdn == "akamai" else 0.2)
            rates[number] = 0.12 if is_tv else 0.02
            for name, value in (("cdn", cdn), ("device", "tv" if is_tv else "phone"), ("country", "DE")):
                columns[name].append(value)
        return Range(columns, (chance.random(views) < rates).astype(float))

    assert suspects(counted(of(20_000, 0.6), of(40_000, 0.2))) == []


@pytest.mark.thorough
def test_two_incidents_are_two_suspects_and_no_view_counts_twice() -> None:
    def worse(columns: Columns, number: int) -> bool:
        return is_of(cdn="own")(columns, number) or is_of(asn="3215")(columns, number)

    now = traffic(6, 30_000, 0.02, 6, worse)
    found = suspects(counted(now, USUAL))

    assert sorted(map(str, named(found))) == sorted(map(str, [{"cdn": "own"}, {"asn": "3215"}]))
    assert sum(one.exposure for one in found) == those_within(now.columns, worse).sum()


@pytest.mark.thorough
def test_a_version_that_is_new_is_suspect_too() -> None:
    now = traffic(7, 20_000, 0.02, 6, is_of(player_version="app 2"))
    old = traffic(8, 30_000, 0.02)
    kept = [number for number, version in enumerate(old.columns["player_version"]) if version != "app 2"]
    usual = Range({name: [column[number] for number in kept] for name, column in old.columns.items()}, old.events[kept])

    (found,) = suspects(counted(now, usual))

    assert dict(found.values) == {"player_version": "app 2"}
    assert found.usual_exposure == 0


@pytest.mark.thorough
def test_a_sum_of_few_large_values_is_no_proof() -> None:
    chance = np.random.default_rng(9)
    calm, worse = traffic(9, 20_000, 0.0), is_of(cdn="own")
    stalls = np.where(chance.random(20_000) < 0.1, chance.lognormal(8, 1, 20_000), 0)
    watched = chance.lognormal(12, 1, 20_000)
    usual_stalls = np.where(chance.random(30_000) < 0.1, chance.lognormal(8, 1, 30_000), 0)
    usual = (usual_stalls, chance.lognormal(12, 1, 30_000))
    event = clump(np.concatenate([stalls, usual_stalls]))
    factors = np.where(those_within(calm.columns, worse), 3.0, 1.0)

    def found(events: Floats) -> list[dict[str, str | None]]:
        return named(suspects(coded(calm.columns, USUAL.columns, (events, watched), usual, event=event)))

    assert found(stalls) == []
    assert found(stalls * factors) == [{"cdn": "own"}]


@pytest.mark.thorough
def test_counts_of_combinations_give_what_views_give_in_any_order() -> None:
    now = traffic(2, 20_000, 0.02, 6, is_of(cdn="fastly", country="DE"))
    cells: dict[tuple[str | None, ...], list[float]] = {}
    for place, side in ((0, now), (2, USUAL)):
        for row, events in zip(zip(*side.columns.values(), strict=True), side.events, strict=True):
            cell = cells.setdefault(row, [0.0] * 4)
            cell[place] += events
            cell[place + 1] += 1

    of_views = suspects(counted(now, USUAL))
    for order in (1, -1):
        made = of_cells([*now.columns], [Cell(values, *cell) for values, cell in list(cells.items())[::order]])
        assert rounded(suspects(made)) == rounded(of_views)


def test_values_are_bounded_and_the_worst_are_among_them() -> None:
    chance = np.random.default_rng(3)
    titles = [f"title {number}" for number in range(5_000)]

    def of(views: int) -> Columns:
        found: list[str | None] = [titles[int(5_000 * one**3)] for one in chance.random(views)]
        return {"title": found, "cdn": [CDNS[int(3 * one)] for one in chance.random(views)]}

    now, usual = of(40_000), of(60_000)
    # A title of about 0.4 % of the views.
    worse = np.array([title == "title 10" for title in now["title"]])
    bad = (chance.random(40_000) < np.where(worse, 0.3, 0.02)).astype(float)
    usually = (chance.random(60_000) < 0.02).astype(float)
    made = coded(now, usual, (bad, np.ones(40_000)), (usually, np.ones(60_000)))

    assert max(len(values) for values in made.values) == VALUES_MAX + 1
    assert named(suspects(made)) == [{"title": "title 10"}]


def test_without_views_or_without_bad_ones_there_is_no_suspect() -> None:
    nothing = Range({name: [] for name in USUAL.columns}, np.zeros(0))
    good = Range(USUAL.columns, np.zeros(30_000))

    for now, usual in ((nothing, nothing), (nothing, USUAL), (good, USUAL), (good, good), (good, nothing)):
        assert suspects(counted(now, usual)) == []


def test_an_unknown_value_can_be_the_suspect() -> None:
    now = traffic(2, 20_000, 0.02, 6, is_of(cdn="own"))
    unknown = {
        side: Range({**of.columns, "cdn": [None if cdn == "own" else cdn for cdn in of.columns["cdn"]]}, of.events)
        for side, of in (("now", now), ("usual", USUAL))
    }

    assert named(suspects(counted(unknown["now"], unknown["usual"]))) == [{"cdn": None}]


@pytest.mark.thorough
def test_what_never_happened_before_is_a_suspect_where_it_happens() -> None:
    now = traffic(2, 20_000, 0.0)
    worse = those_within(now.columns, is_of(cdn="own", country="DE"))
    now = Range(now.columns, (worse & (np.arange(20_000) % 4 == 0)).astype(float))

    assert named(suspects(counted(now, Range(USUAL.columns, np.zeros(30_000))))) == [{"cdn": "own", "country": "DE"}]


@pytest.mark.thorough
@pytest.mark.parametrize(("usual", "now"), [(20, 6), (50, 16), (200, 66)])
def test_what_always_fails_is_no_suspect(usual: int, now: int) -> None:
    """A title that never plays is as it was, however good all others are."""
    named_at_all = 0
    for seed in range(2):
        sides = []
        for views, failing, at in ((10_000, now, 40 + seed), (30_000, usual, 60 + seed)):
            made = traffic(at, views, 0.02)
            titles: list[str | None] = [f"title {number % 30}" for number in range(views)]
            titles[:failing] = ["broken"] * failing
            sides.append(Range({**made.columns, "title": titles}, np.append(np.ones(failing), made.events[failing:])))
        named_at_all += any(one.get("title") == "broken" for one in named(suspects(counted(*sides))))
    assert named_at_all == 0


def test_cohorts_that_are_a_little_worse_leave_room_for_one_that_is_a_suspect() -> None:
    """Many wide ones have more evidence each than the narrow one, and none of them changed enough."""
    chance = np.random.default_rng(14)
    cells = []
    for number in range(93):
        # Twelve large networks that are 1.2 times as bad, eighty small ones, and the one that is 2.9 times as bad.
        views, factor = (240_000, 1.2) if number < 12 else (100_000, 1.0) if number < 92 else (1_000, 2.9)
        name = f"network {number}" if number < 92 else "worse"
        for cdn in CDNS:
            events, usual = chance.poisson(0.05 * factor * views), chance.poisson(0.05 * views)
            cells.append(Cell((name, cdn), float(events), views, float(usual), views))

    assert named(suspects(of_cells(("asn", "cdn"), cells)))[0] == {"asn": "worse"}


@pytest.mark.thorough
def test_a_search_ends_when_it_has_as_many_as_are_wanted() -> None:
    def worse(columns: Columns, number: int) -> bool:
        return is_of(cdn="own")(columns, number) or is_of(asn="3215")(columns, number)

    counts = counted(traffic(6, 30_000, 0.02, 6, worse), USUAL)
    one, both = searched(counts, limit=1), searched(counts)

    assert (len(one.found), one.near) == (1, [])
    assert len(both.found) == 2
    assert all(found.surprise > LINE for found in both.found)
    assert all(COUNTED < near.surprise <= LINE for near in both.near)
    assert len(both.near) <= NEAR_MAX


@pytest.mark.thorough
def test_a_search_that_goes_on_finds_what_a_longer_one_does() -> None:
    def worse(columns: Columns, number: int) -> bool:
        return any(is_of(**{name: value})(columns, number) for name, value in (("cdn", "own"), ("asn", "3215")))

    counts = counted(traffic(6, 30_000, 0.02, 6, worse), USUAL)
    search = Search(counts)

    for limit in (1, 2, 5, 5, 1):
        assert search.until(limit) == searched(counts, limit=limit)


@pytest.mark.thorough
def test_descriptions_of_the_same_rows_are_told_apart_by_their_costs_in_any_order_of_rows() -> None:
    """Sums of times are no whole numbers: rounded, those by one dimension would differ from those by another."""
    chance = np.random.default_rng(7)

    def side(factor: float) -> Range:
        made = traffic(int(chance.integers(1_000)), 20_000, 0.05, factor, is_of(device="tv"))
        made.columns["os"] = [f"os of {device}" for device in made.columns["device"]]
        made.columns["form"] = [f"form of {device}" for device in made.columns["device"]]
        return replace(made, events=made.events * chance.gamma(1, 50, made.events.size))

    sides = [side(2.0), side(1.0)]
    weights = [(one.events, chance.gamma(1, 300, one.events.size)) for one in sides]
    counts = coded(sides[0].columns, sides[1].columns, *weights, event=clump(weights[0][0]))
    found = searched(counts)
    assert named(found.found)[0] == {"device": "tv"}
    assert not {"os", "form"} & {name for one in (*found.found, *found.near) for name, _ in one.values}

    def shuffled(one: Side) -> Side:
        order = chance.permutation(one.events.size)
        return Side(one.codes[:, order], one.events[order], one.exposure[order])

    for _ in range(5):
        again = searched(replace(counts, now=shuffled(counts.now), usual=shuffled(counts.usual)))
        assert (named(again.found), named(again.near)) == (named(found.found), named(found.near))


def sampled(views: int, usual: int, how: Sampling, *, weight: float) -> Counts:
    """Of calm views the sample, beside few usual ones that are all there."""
    chance, cards = np.random.default_rng(4), (40, 40, 12, 5)
    columns = [(card * chance.random(views + usual) ** 2).astype(np.int32) for card in cards]
    events = (chance.random(views + usual) < 0.1).astype(float)
    is_now = np.arange(views + usual) < views
    number = chance.integers(0, 1 << 30, views + usual)
    sides = is_now & (number % np.where(events > 0, how.bad_of, how.good_of) == 0), ~is_now
    now, before = (events[side] for side in sides)
    return numbered(
        ("asn", "title", "country", "cdn"),
        [[str(code) for code in range(card)] for card in cards],
        ([column[sides[0]] for column in columns], [column[sides[1]] for column in columns]),
        (now, how.exposure(now, np.ones(now.size))),
        (before, np.ones(before.size)),
        sampled=(weight, 0.0),
    )


def test_a_sample_of_calm_views_names_nothing_beside_a_short_baseline() -> None:
    """Views without events are one in sixty: of small cohorts hardly any is drawn, which is no sign of failures."""
    how = Sampling(4, 60)

    assert suspects(sampled(600_000, 6_000, how, weight=how.weight)) == []
    assert suspects(sampled(600_000, 6_000, how, weight=0.0)) != []
