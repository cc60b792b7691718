"""Live slices: gauges of the newest bucket, counts of the last minute, bounded."""

from collections.abc import Sequence
from typing import Any

from services.dashboard.live.history import ALL, SLICES_MS, LiveHistory
from services.dashboard.live.slices import first_of, names_of, others_now, series_of, slices_of, summed
from shared.schemas.live import BUCKET_MS, OTHER, SLICE_VALUES_MAX, UNKNOWN, Live, LiveSlice
from tests.unit.dashboard.records import live, slice_of

CARRY_MS = 6 * BUCKET_MS


def cards(buckets: Sequence[Sequence[Live]], within: str = "") -> dict[str, list[dict[str, Any]]]:
    """Slices by dimension, as the page shows them."""
    return slices_of(summed(buckets, CARRY_MS, has_pairs=bool(within)), within)


def test_gauges_are_of_the_newest_bucket_and_counts_of_all_summed_over_partitions() -> None:
    first = [
        live(1, slices={"cdn=x": slice_of(viewers_now=9, playback_failures=1)}),
        live(1, partition=1, slices={"cdn=x": slice_of(viewers_now=5), "cdn=y": slice_of(views_finished=2)}),
    ]
    second = [live(2, slices={"cdn=x": slice_of(viewers_now=3, rebuffering_now=1, playback_failures=2)})]
    (x, y) = cards([first, second])["cdn"]
    # Partition 1 has left the second bucket out: its viewers are still there.
    assert (x["value"], x["viewers_now"], x["rebuffering_now"], x["playback_failures"]) == ("x", 8, 1, 3)
    assert (y["value"], y["viewers_now"], y["views_finished"]) == ("y", 0, 2)


def test_a_partitions_last_figures_do_not_stand_for_ever() -> None:
    old = [live(1, partition=1, slices={"cdn=x": slice_of(viewers_now=5)})]
    new = [live(7, slices={"cdn=x": slice_of(viewers_now=3)})]
    assert cards([old, new])["cdn"][0]["viewers_now"] == 3


def test_a_value_may_hold_anything_and_dimensions_stand_apart() -> None:
    slices = cards([[live(1, slices={"cdn=a=b": slice_of(), "country=DE": slice_of(viewers_now=1)})]])
    assert [(name, one["value"]) for name, values in slices.items() for one in values] == [
        ("cdn", "a=b"),
        ("country", "DE"),
    ]


def test_too_many_values_are_added_up_in_one() -> None:
    many = {f"cdn={number}": slice_of(viewers_now=100 - number) for number in range(SLICE_VALUES_MAX + 2)}
    slices = cards([[live(1, slices=many | {f"cdn={OTHER}": slice_of(viewers_now=7)})]])["cdn"]
    assert [one["value"] for one in slices] == [*(str(number) for number in range(SLICE_VALUES_MAX)), OTHER]
    assert slices[-1]["viewers_now"] == 7 + 80 + 79


def test_views_without_a_value_come_last_and_take_no_place() -> None:
    many = {f"cdn={number}": slice_of(viewers_now=1) for number in range(SLICE_VALUES_MAX)}
    slices = cards([[live(1, slices=many | {f"cdn={UNKNOWN}": slice_of(viewers_now=25)})]])["cdn"]
    assert len(slices) == SLICE_VALUES_MAX + 1
    assert (slices[-1]["value"], slices[-1]["viewers_now"]) == (UNKNOWN, 25)


def test_a_history_gives_the_newest_buckets_shown_of_one_customer_or_of_all() -> None:
    history = LiveHistory(history_ms=600_000, settle_ms=0, customers_max=10)
    for bucket in range(1, 5):
        history.take_record(live(bucket), 0)
        history.take_record(live(bucket, customer_id="globex"), 0)
    history.settle(0)
    history.take_record(live(5), 0)
    assert [[record.bucket_ms // BUCKET_MS for record in records] for records in history.recent("acme", 2)] == [
        [3],
        [4],
    ]
    assert [len(records) for records in history.recent(ALL, 2)] == [2, 2]
    assert history.recent("initech", 1) == [[]]


def test_pairs_are_no_dimensions() -> None:
    slices = cards(
        [[live(1, slices={"cdn=x": slice_of(viewers_now=1), "cdn,country=x\x1fDE": slice_of(viewers_now=1)})]]
    )
    assert list(slices) == ["cdn"]


def test_slices_are_kept_for_as_long_as_they_are_shown() -> None:
    shown = LiveHistory(history_ms=300_000, settle_ms=7_000, customers_max=10)
    for bucket in (1, 2, 3 + SLICES_MS // BUCKET_MS):
        shown.take_record(live(bucket, slices={"cdn=x": slice_of(viewers_now=1)}), 0)
    # Behind, and of a bucket whose slices are gone.
    shown.take_record(live(2, partition=1, slices={"cdn=x": slice_of(viewers_now=1)}), 0)
    shown.settle(10_000)
    kept = [bool(record.slices) for records in shown.recent("acme", 100) for record in records]
    assert kept == [False, False, False, True]


def test_a_slice_has_its_own_series_and_pairs_are_found_in_either_order() -> None:
    first = [
        live(1, slices={"cdn,country=x\x1fDE": slice_of(viewers_now=4, failures=1)}),
        live(1, partition=1, slices={"cdn,country=x\x1fDE": slice_of(viewers_now=2)}),
    ]
    second = [live(2, slices={"cdn,country=x\x1fFR": slice_of(viewers_now=3)})]
    for name in ("cdn,country=x\x1fDE", "country,cdn=DE\x1fx"):
        series = series_of([first, [], second], names_of(name), CARRY_MS)
        # The second partition has left the last bucket out: its viewers are still there.
        assert series["viewers_now"] == [6, None, 2]
        assert series["failures"] == [1, None, 0]
    assert names_of("cdn=a,b=c") == ("cdn=a,b=c",)


def within_x(*records: Live) -> dict[str, dict[object, int]]:
    """Viewers by dimension and value within `cdn=x`."""
    found = cards([list(records)], "cdn=x")
    return {name: {one["value"]: one["viewers_now"] for one in values} for name, values in found.items()}


def test_within_a_slice_other_dimensions_have_its_views_alone() -> None:
    pairs = {
        "cdn,country=x\x1fDE": slice_of(viewers_now=3),
        "cdn,country=x\x1fFR": slice_of(viewers_now=1),
        "cdn,country=y\x1fDE": slice_of(viewers_now=9),
        # The processor's order of a pair is its own.
        "asn,cdn=1\x1fx": slice_of(viewers_now=4),
        "asn,country=1\x1fDE": slice_of(viewers_now=12),
    }
    alone = {"cdn=x": slice_of(viewers_now=4), "cdn=y": slice_of(viewers_now=9), "country=DE": slice_of(viewers_now=12)}
    assert within_x(live(1, slices=alone | pairs)) == {
        "asn": {"1": 4},
        "cdn": {"y": 9, "x": 4},
        "country": {"DE": 3, "FR": 1},
    }


def test_what_no_pair_names_of_a_slice_is_among_the_others() -> None:
    named = {"cdn=x": slice_of(viewers_now=7), "country=DE": slice_of(viewers_now=9)}
    pairs = {"cdn,country=x\x1fDE": slice_of(viewers_now=4), f"cdn,country={OTHER}\x1f{OTHER}": slice_of(viewers_now=5)}
    assert within_x(live(1, slices=named | pairs))["country"] == {"DE": 4, OTHER: 3}


def test_a_dimension_without_a_view_of_the_slice_is_counted_still() -> None:
    assert within_x(live(1, slices={"cdn=y": slice_of(viewers_now=9), "country=DE": slice_of(viewers_now=9)})) == {
        "cdn": {"y": 9},
        "country": {},
    }


def test_viewers_without_a_name_may_be_of_a_slice_that_is_not_named() -> None:
    first = live(1, slices={"cdn=x": slice_of(viewers_now=2), f"cdn={OTHER}": slice_of(viewers_now=50)}, viewers_now=52)
    second = live(1, partition=1, slices={f"cdn={OTHER}": slice_of(viewers_now=5)}, viewers_now=5)
    third = live(1, partition=2, slices={f"asn,cdn={OTHER}\x1f{OTHER}": slice_of(viewers_now=6)}, viewers_now=6)
    buckets = [[first, second, third]]
    # Where it is named, that is all of it.
    assert others_now(buckets, names_of("cdn=x"), CARRY_MS) == 5
    assert others_now(buckets, names_of("cdn,asn=x\x1f1"), CARRY_MS) == 6
    assert others_now([[first]], names_of("cdn=x"), CARRY_MS) == 0


def test_a_pair_has_the_slice_of_its_first_dimension() -> None:
    assert [first_of(name) for name in ("cdn,asn=x\x1f1", "cdn=a,b=c", "")] == ["cdn=x", "cdn=a,b=c", ""]


def test_sums_serve_every_slice_that_is_named_and_stay_as_they_are() -> None:
    named = {"cdn=x": slice_of(viewers_now=7), "cdn=y": slice_of(viewers_now=2), "country=DE": slice_of(viewers_now=9)}
    pairs = {"cdn,country=x\x1fDE": slice_of(viewers_now=4), "cdn,country=y\x1fDE": slice_of(viewers_now=2)}
    sums = summed([[live(1, slices=named | pairs)]], CARRY_MS, has_pairs=True)
    before = {name: dict(one) for name, one in sums.items()}
    for within, others in (("cdn=x", {"DE": 4, OTHER: 3}), ("cdn=y", {"DE": 2}), ("cdn=x", {"DE": 4, OTHER: 3})):
        found = slices_of(sums, within)["country"]
        assert {one["value"]: one["viewers_now"] for one in found} == others
    assert slices_of(sums, "cdn=unheard of")["country"] == []
    assert sums == before


def test_cards_are_not_of_those_without_a_name_of_their_own() -> None:
    assert [first_of(name) for name in (f"cdn={OTHER}", f"cdn,country={OTHER}\x1f{OTHER}", "cdn=x")] == [
        "",
        "",
        "cdn=x",
    ]


def test_viewers_without_a_name_are_never_those_without_a_value() -> None:
    record = live(1, slices={"cdn=x": slice_of(viewers_now=2), f"cdn={OTHER}": slice_of(viewers_now=5)}, viewers_now=7)
    pair = live(1, partition=1, slices={f"asn,cdn={OTHER}\x1f{OTHER}": slice_of(viewers_now=6)}, viewers_now=6)
    # Whose CDN is unknown has always a name: none of the five can be of them.
    assert others_now([[record]], names_of(f"cdn={UNKNOWN}"), CARRY_MS) == 0
    assert others_now([[pair]], names_of(f"cdn,asn={UNKNOWN}\x1f{UNKNOWN}"), CARRY_MS) == 0
    assert others_now([[pair]], names_of(f"cdn,asn={UNKNOWN}\x1f1"), CARRY_MS) == 6


def test_a_pair_has_no_more_viewers_without_a_name_than_its_values_have() -> None:
    others = {f"cdn,country={OTHER}\x1f{OTHER}": slice_of(viewers_now=500)}
    named = {
        "cdn=x": slice_of(viewers_now=100),
        "cdn,country=x\x1fDE": slice_of(viewers_now=60),
        "cdn,country=y\x1fFR": slice_of(viewers_now=400),
        # Some of these may watch from France: what was given up of them is not known.
        f"cdn,country=x\x1f{OTHER}": slice_of(viewers_now=9),
    }

    def most(slices: dict[str, LiveSlice]) -> int:
        return others_now([[live(1, slices=others | slices)]], names_of("country,cdn=FR\x1fx"), CARRY_MS)

    # A hundred watch by x, sixty of them from Germany.
    assert most(named) == 40
    assert most(named | {"country=FR": slice_of(viewers_now=412)}) == 12
    # A value without a name of its own says nothing.
    assert most({}) == 500
