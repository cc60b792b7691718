"""Partitions that nobody has: which they are, and which slot is to join again."""

import pytest
from confluent_kafka import KafkaError

from services.processor.runtime.slot.unowned import unowned
from tests.unit.processor.runtime.kafka.test_ownership import Group, member


def test_the_slot_with_the_fewest_partitions_joins_again_where_some_are_nobodys() -> None:
    group = Group([member("b/0", None, 4, 5), member("a/0", "http://a:1"), member("a/1", None)])
    assert unowned([group], "beacons", 6) == ({0, 1, 2, 3}, "a/0")


def test_a_group_in_which_all_have_an_owner_is_left_alone() -> None:
    group = Group([member("b/0", None, 0, 2), member("a/0", None, 1), member("c/0", None)])
    assert unowned([group], "beacons", 3)[0] == frozenset()


@pytest.mark.parametrize(
    "groups",
    [
        [],
        [Group([member("a/0", None, 0)], "PreparingRebalance")],
        [Group([], "Stable")],
        [Group([member("a/0", None, 0)], error=KafkaError(KafkaError.NOT_COORDINATOR))],
        [Group([member("a/0", None, 0)]), Group([member("a/0", None, 0)])],
    ],
)
def test_a_group_that_is_not_settled_says_nothing(groups: list[Group]) -> None:
    assert unowned(groups, "beacons", 3) == (frozenset(), "")
