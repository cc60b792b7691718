"""Any span of hours is a few blocks."""

from hypothesis import given
from hypothesis import strategies as st

from services.dashboard.quality.queries import LEVEL_MAX, blocks_since


@given(st.integers(0, 10_000_000))
def test_the_blocks_of_a_span_hold_every_hour_from_its_first_on_once(hour: int) -> None:
    blocks, first = blocks_since(hour)
    end = hour
    for level, block in blocks:
        assert block << level == end
        end += 1 << level
    assert first << LEVEL_MAX == end
    assert len({level for level, _ in blocks}) == len(blocks) <= LEVEL_MAX
