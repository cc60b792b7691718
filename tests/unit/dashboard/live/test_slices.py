"""Live slices: gauges of the newest bucket, counts of the last minute, bounded."""

from services.dashboard.live.history import ALL, SLICES_MS, LiveHistory
from services.dashboard.live.slices import names_of, series_of, slices_of
from shared.schemas.live import BUCKET_MS, OTHER, SLICE_VALUES_MAX, UNKNOWN
from tests.unit.dashboard.records import live, slice_of

CARRY_MS = 6 * BUCKET_MS


def test_gauges_are_of_the_newest_bucket_and_counts_of_all_summed_over_partitions() -> None:
    first = [
        live(1, slices={"cdn=x": slice_of(viewers_now=9, playback_failures=1)}),
        live(1, partition=1, slices={"cdn=x": slice_of(viewers_now=5), "cdn=y": slice_of(views_finished=2)}),
    ]
    second = [live(2, slices={"cdn=x": slice_of(viewers_now=3, rebuffering_now=1, playback_failures=2)})]
    (x, y) = slices_of([first, second], CARRY_MS)["cdn"]
    # Partition 1 has left the second bucket out: its viewers are still there.
    assert (x["value"], x["viewers_now"], x["rebuffering_now"], x["playback_failures"]) == ("x", 8, 1, 3)
    assert (y["value"], y["viewers_now"], y["views_finished"]) == ("y", 0, 2)


def test_a_partitions_last_figures_do_not_stand_for_ever() -> None:
    old = [live(1, partition=1, slices={"cdn=x": slice_of(viewers_now=5)})]
    new = [live(7, slices={"cdn=x": slice_of(viewers_now=3)})]
    assert slices_of([old, new], CARRY_MS)["cdn"][0]["viewers_now"] == 3


def test_a_value_may_hold_anything_and_dimensions_stand_apart() -> None:
    slices = slices_of([[live(1, slices={"cdn=a=b": slice_of(), "country=DE": slice_of(viewers_now=1)})]], CARRY_MS)
    assert [(name, one["value"]) for name, values in slices.items() for one in values] == [
        ("cdn", "a=b"),
        ("country", "DE"),
    ]


def test_too_many_values_are_added_up_in_one() -> None:
    many = {f"cdn={number}": slice_of(viewers_now=100 - number) for number in range(SLICE_VALUES_MAX + 2)}
    slices = slices_of([[live(1, slices=many | {f"cdn={OTHER}": slice_of(viewers_now=7)})]], CARRY_MS)["cdn"]
    assert [one["value"] for one in slices] == [*(str(number) for number in range(SLICE_VALUES_MAX)), OTHER]
    assert slices[-1]["viewers_now"] == 7 + 80 + 79


def test_views_without_a_value_come_last_and_take_no_place() -> None:
    many = {f"cdn={number}": slice_of(viewers_now=1) for number in range(SLICE_VALUES_MAX)}
    slices = slices_of([[live(1, slices=many | {f"cdn={UNKNOWN}": slice_of(viewers_now=25)})]], CARRY_MS)["cdn"]
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
    slices = slices_of(
        [[live(1, slices={"cdn=x": slice_of(viewers_now=1), "cdn,country=x\x1fDE": slice_of(viewers_now=1)})]], CARRY_MS
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
