"""The operator's view: every partition once, from its owner, or from the group where no owner answers."""

from services.processor.engine.routing import Owner
from services.processor.runtime.http.partitions import overview
from shared.schemas.slots import PartitionStatus, SlotStatus

A, B = Owner("a/0", "http://a:1"), Owner("b/0", "http://b:1")


def working(partition: int, owner: str) -> PartitionStatus:
    return PartitionStatus(partition=partition, owner=owner, state="working", lag_records=0, rows={"views": 3})


def test_a_partition_is_reported_by_its_owner_else_by_the_group_else_as_unowned() -> None:
    slots = [SlotStatus("b/0", problem="TimeoutError"), SlotStatus("a/0", [working(0, "a/0")], rss_bytes=1)]
    seen = overview("video_views", "a/0", 3, {0: A, 1: B}, slots, standby_lag={1: 7}.get)
    assert [(row.partition, row.owner, row.state) for row in seen.partitions] == [
        (0, "a/0", "working"),
        (1, "b/0", "unanswered"),
        (2, None, "unowned"),
    ]
    assert [row.standby_lag_records for row in seen.partitions] == [None, 7, None]
    assert [(slot.slot, slot.problem) for slot in seen.slots] == [("a/0", None), ("b/0", "TimeoutError")]


def test_who_was_the_owner_once_is_not_believed() -> None:
    slots = [SlotStatus("a/0", [working(0, "a/0")])]
    assert overview("video_views", "a/0", 1, {0: B}, slots, standby_lag={}.get).partitions[0].state == "unanswered"
