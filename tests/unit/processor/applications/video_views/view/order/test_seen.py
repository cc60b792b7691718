"""Numbers that have come, as ranges: each is known, and no other."""

from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.video_views.view.order.seen import Ranges, add_number, count_of, has_number


@given(st.lists(st.integers(0, 40), max_size=60))
def test_ranges_know_what_a_set_knows(numbers: list[int]) -> None:
    ranges: Ranges = []
    seen: set[int] = set()
    for number in numbers:
        assert add_number(ranges, number) == (number not in seen)
        seen.add(number)
    assert [number for number in range(-1, 43) if has_number(ranges, number)] == sorted(seen)
    assert count_of(ranges) == len(seen)
