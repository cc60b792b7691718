"""Windows: tables of cases, and what holds for any times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.engine.windows import Sessions, Tumbling, Window

times = st.integers(0, 2_000)
sizes = st.integers(1, 300)
graces = st.integers(0, 300)


@pytest.mark.parametrize(
    ("at_ms", "window"),
    [(0, (0, 9)), (9, (0, 9)), (10, (10, 19)), (1_795_000_000_007, (1_795_000_000_000, 1_795_000_000_009))],
)
def test_a_time_falls_into_one_tumbling_window(at_ms: int, window: tuple[int, int]) -> None:
    assert Tumbling(10).window_of(at_ms) == window


@pytest.mark.parametrize(("clock_ms", "is_closed"), [(19, False), (24, False), (25, True)])
def test_a_tumbling_window_closes_by_its_grace_after_its_end(clock_ms: int, is_closed: bool) -> None:
    assert Tumbling(10, grace_ms=5).is_closed(Window(10, 19), clock_ms) is is_closed


@pytest.mark.parametrize(
    ("at_ms", "others", "grown", "touched"),
    [
        (50, [], (50, 50), []),
        (50, [(10, 39)], (50, 50), []),
        (50, [(10, 40)], (10, 50), [(10, 40)]),
        (50, [(60, 70)], (50, 70), [(60, 70)]),
        (50, [(61, 70)], (50, 50), []),
        (50, [(20, 41), (59, 70)], (20, 70), [(20, 41), (59, 70)]),
        (50, [(20, 80)], (20, 80), [(20, 80)]),
    ],
    ids=["alone", "too long after", "prolongs", "comes before", "too early", "bridges two", "within"],
)
def test_a_session_grows_by_what_it_touches(
    at_ms: int, others: list[tuple[int, int]], grown: tuple[int, int], touched: list[tuple[int, int]]
) -> None:
    sessions = Sessions(gap_ms=10)
    assert sessions.merge(sessions.window_of(at_ms), [Window(*other) for other in others]) == (grown, touched)


@pytest.mark.parametrize(("clock_ms", "is_closed"), [(100, False), (135, False), (136, True)])
def test_a_session_closes_by_gap_and_grace_after_its_last_time(clock_ms: int, is_closed: bool) -> None:
    assert Sessions(gap_ms=30, grace_ms=5).is_closed(Window(80, 100), clock_ms) is is_closed


@pytest.mark.parametrize("make", [lambda: Tumbling(0), lambda: Tumbling(1, -1), lambda: Sessions(-1)])
def test_what_is_no_window_is_refused(make: object) -> None:
    with pytest.raises(ValueError, match="not a"):
        make()  # type: ignore[operator]


@given(times, sizes, graces, times)
def test_a_record_that_is_not_late_finds_its_window_open(
    at_ms: int, size_ms: int, grace_ms: int, ahead_ms: int
) -> None:
    clock_ms = at_ms + min(ahead_ms, grace_ms)
    tumbling, sessions = Tumbling(size_ms, grace_ms), Sessions(size_ms, grace_ms)
    assert not tumbling.is_closed(tumbling.window_of(at_ms), clock_ms)
    # Any session that it could prolong or bridge, too.
    assert not sessions.is_closed(Window(at_ms - size_ms, at_ms - size_ms), clock_ms)


@given(times, sizes)
def test_tumbling_windows_lie_side_by_side(at_ms: int, size_ms: int) -> None:
    tumbling = Tumbling(size_ms)
    window = tumbling.window_of(at_ms)
    assert window.first_ms <= at_ms <= window.last_ms
    assert tumbling.window_of(window.last_ms) == window
    assert tumbling.window_of(window.last_ms + 1).first_ms == window.last_ms + 1


@given(st.lists(times, min_size=1), st.integers(0, 200))
def test_sessions_are_the_same_for_any_order_of_times(at: list[int], gap_ms: int) -> None:
    sessions = Sessions(gap_ms)
    found: list[Window] = []
    for at_ms in at:
        grown, touched = sessions.merge(sessions.window_of(at_ms), found)
        found = [other for other in found if other not in touched] + [grown]
    expected: list[list[int]] = []
    for at_ms in sorted(at):
        if expected and at_ms - expected[-1][-1] <= gap_ms:
            expected[-1].append(at_ms)
        else:
            expected.append([at_ms])
    assert sorted(found) == [(each[0], each[-1]) for each in expected]
