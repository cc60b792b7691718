"""Which minutes of dirty slices are counted again."""

from services.finalizer.serving.published import Slice
from services.finalizer.streaming.recount import Part, recount

A, B, C = Slice(10, "a"), Slice(10, "b"), Slice(11, "a")


def test_slices_of_an_hour_share_their_minutes_and_others_are_counted_whole() -> None:
    again = recount([A, B, C, Slice(12, "c")], {A: [3], B: [59, 0], C: [7]})
    assert again.whole == [Slice(12, "c")]
    assert again.parts == [Part(10, ("a", "b"), (0, 3, 59)), Part(11, ("a",), (7,))]
    assert recount([A, C], {}).parts == []


def test_of_parts_only_the_minutes_that_are_counted_are_replaced_and_their_hours() -> None:
    replaced = recount([A, Slice(12, "c"), Slice(13, "c")], {A: [0, 2]}).replaced()
    assert replaced == (
        "grain <> 'day' AND ((hour IN (12, 13) AND customer_id = 'c')"
        " OR (hour = 10 AND customer_id IN ('a') AND (grain = 'hour' OR start_ms IN (36000000, 36120000))))"
    )
