"""What the group's description says of owners, and what it confirms."""

import struct
from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError

from services.processor.engine.routing import Owner
from services.processor.runtime.kafka.ownership import Described, client_id, described, owner_of


@dataclass
class Member:
    id: str
    client_id: str
    assignment: bytes


@dataclass
class Group:
    members: list[Member] = field(default_factory=list)
    state: str = "Stable"
    error: KafkaError | None = None


def assignment(**topics: list[int]) -> bytes:
    """As a group's leader writes it."""
    packed = [
        struct.pack(">h", len(name)) + name.encode() + struct.pack(f">{len(numbers) + 1}i", len(numbers), *numbers)
        for name, numbers in topics.items()
    ]
    return struct.pack(">hi", 0, len(topics)) + b"".join(packed) + struct.pack(">i", -1)


def member(name: str, url: str | None, *partitions: int) -> Member:
    packed = assignment(another=[7, 8], beacons=list(partitions), other=[])
    return Member(f"id of {name}", client_id("video_views", name, url), packed)


@pytest.mark.parametrize("url", [None, "http://pod-1:9103", "https://pod-1.example:443"])
def test_a_client_id_carries_slot_and_address(url: str | None) -> None:
    assert owner_of(client_id("video_views", "pod-1/2", url)) == Owner("pod-1/2", url)


def test_an_address_that_is_none_is_not_believed() -> None:
    assert owner_of("video_views/pod-1/2@file:///etc/passwd") == Owner("pod-1/2", None)


def test_owners_and_members_come_from_the_input_topic_alone() -> None:
    group = Group(
        [member("a/0", "http://a:1", 0, 2), member("b/0", None, 1), Member("id of c", "video_views/c/0", b"")]
    )
    reply = described([group], "beacons", 5.0)
    assert reply.owners == {0: Owner("a/0", "http://a:1"), 2: Owner("a/0", "http://a:1"), 1: Owner("b/0", None)}
    assert (reply.asked_at, reply.is_settled) == (5.0, True)


def test_only_the_very_member_that_is_named_is_confirmed() -> None:
    reply = described([Group([member("a/0", "http://a:1", 0)])], "beacons", 5.0)
    assert reply.confirms(0, "id of a/0")
    assert not reply.confirms(0, "id of an earlier a/0"), "a slot that was replaced under its own id"
    assert not reply.confirms(1, "id of a/0")
    assert not Described().confirms(0, ""), "no member id proves nothing"


def test_a_group_that_rebalances_confirms_nothing() -> None:
    reply = described([Group([], "PreparingRebalance")], "beacons", 5.0)
    assert not reply.is_settled
    assert not reply.confirms(0, "id of a/0")


def test_a_group_that_nobody_or_more_than_one_broker_coordinates_confirms_nothing() -> None:
    group = Group([member("a/0", "http://a:1", 0)])
    failed = Group([member("a/0", "http://a:1", 0)], error=KafkaError(KafkaError.NOT_COORDINATOR))
    for groups in ([], [group, group], [failed]):
        reply = described(groups, "beacons", 5.0)
        assert not reply.is_settled
        assert not reply.confirms(0, "id of a/0")
