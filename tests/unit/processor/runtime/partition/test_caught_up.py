"""A core that was taken or rolled back knows again what was there once it has folded all that the leaders had then."""

import pytest

from services.processor.runtime.kafka.end_offsets import End
from services.processor.runtime.partition.caught_up import CaughtUp


def restarted(*topics: str, at: float = 5.0) -> CaughtUp:
    caught_up = CaughtUp(topics)
    caught_up.restart(at)
    return caught_up


@pytest.mark.parametrize(
    ("ends", "folded_to", "expected"),
    [
        ({}, 100, False),
        ({"a": End(10, asked_at=4.9)}, 100, False),
        ({"a": End(10, asked_at=5.1)}, 9, False),
        ({"a": End(10, asked_at=5.1)}, 10, True),
    ],
)
def test_only_an_end_asked_for_afterwards_counts(ends: dict[str, End], folded_to: int, expected: bool) -> None:
    assert restarted("a").observe(ends, {"a": folded_to}, read_at=None) is expected


def test_every_input_counts() -> None:
    caught_up = restarted("a", "b")
    assert not caught_up.observe({"a": End(1, asked_at=5.1)}, {"a": 1, "b": 1}, read_at=None)
    assert not caught_up.observe({"b": End(2, asked_at=5.2)}, {"a": 1, "b": 1}, read_at=None)
    assert caught_up.observe({}, {"a": 1, "b": 2}, read_at=None)


def test_offsets_that_hold_no_record_are_passed_by_having_read_everything() -> None:
    caught_up = restarted("a")
    assert not caught_up.observe({"a": End(10, asked_at=5.1)}, {"a": 8}, read_at=5.0)
    assert caught_up.observe({"a": End(10, asked_at=5.1)}, {"a": 8}, read_at=5.1)


def test_later_records_do_not_move_the_goal_and_a_rollback_sets_a_new_one() -> None:
    caught_up = restarted("a")
    assert not caught_up.observe({"a": End(10, asked_at=5.1)}, {"a": 0}, read_at=None)
    assert caught_up.observe({"a": End(1000, asked_at=5.4)}, {"a": 10}, read_at=None)
    assert caught_up.observe({}, {}, read_at=None), "it stays so"
    caught_up.restart(6.0)
    assert not caught_up.observe({"a": End(1000, asked_at=5.9)}, {"a": 1000}, read_at=5.9)
    assert caught_up.observe({"a": End(1000, asked_at=6.1)}, {"a": 1000}, read_at=None)
