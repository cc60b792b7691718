"""Any range of hours is a few blocks."""

from hypothesis import given
from hypothesis import strategies as st

from services.query.core.sql.blocks import LEVEL_MAX, blocks_of


@given(st.integers(0, 10_000_000), st.integers(0, 9_600))
def test_the_blocks_of_a_range_hold_each_of_its_hours_once(first: int, count: int) -> None:
    hour = first
    blocks = blocks_of(first, first + count)
    for level, block in blocks:
        assert 0 <= level <= LEVEL_MAX
        assert block << level == hour
        hour += 1 << level
    assert hour == first + count
    assert len(blocks) <= 2 * LEVEL_MAX
