"""Records, rows and views that the application cannot deal with, and input that is gone: rejected, cut off, or the slot stops."""

import time

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from services.processor.applications.video_views.stores import VIEWS
from services.processor.engine.state.rows import pack
from shared import codec, topics
from shared.partitioning import partition_of
from tests.integration.parts.failing import Scene
from tests.integration.parts.feed import beacon, newest, observed
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import wait_until
from tests.integration.processor.raising_slot import PROGRAM, RAISES, TOO_LARGE
from tests.integration.processor.stores import change_position

pytestmark = pytest.mark.integration

AT_MS = 1_790_000_000_000
#: What is not text cannot be a row's ids: a view with such a key can be folded, but not finished.
UNFINISHABLE = b"acme:\xff"


def encoded(view_id: str, seq: int, event: str = "heartbeat", **attrs: object) -> bytes:
    return codec.BEACON.encode(beacon(view_id, seq, event, AT_MS + min(seq, 1000) * 1000, **attrs))


def test_poison_is_rejected_with_its_bytes_and_the_rest_goes_on(scene: Scene) -> None:
    slot = scene.started(program=PROGRAM)
    feed = scene.feed(seconds=3)
    too_large = encoded("poison", 2, "playing", video_title=TOO_LARGE.decode())
    scene.send(b"acme:garbage", b"{garbage", b"")
    scene.send(b"acme:poison", encoded("poison", 1, "viewstart"), too_large)
    scene.send(UNFINISHABLE, encoded("unfinishable", 1, "viewstart"))
    scene.send(b"acme:poison", encoded("poison", 2, "viewend", view_watch_time=7))
    scene.also["poison"] = (2, 7, "clean")
    feed.finish()
    scene.expect_truth()
    wait_until(lambda: len(scene.rejected()) == 4, "all poison is rejected")
    rejected = {(reason, key, value) for reason, key, value in scene.rejected() if reason != "fire_failed"}
    assert rejected == {
        ("undecodable", b"acme:garbage", b"{garbage"),
        ("undecodable", b"acme:garbage", b""),
        ("fold_failed", b"acme:poison", too_large),
    }
    (row,) = [value for reason, key, value in scene.rejected() if (reason, key) == ("fire_failed", UNFINISHABLE)]
    assert row
    assert slot.terminate() == 0


def test_a_view_whose_fold_raises_is_folded_without_what_it_raises_on_and_the_slot_stays(scene: Scene) -> None:
    # The slot stays in the group however slow the machine: each partition is taken once.
    slot = scene.started(program=PROGRAM, PROCESSOR_SESSION_MS="20000")
    feed = scene.feed(seconds=4)
    raising = [encoded("raises", seq, custom_1=RAISES.decode()) for seq in range(2, 8)]
    # Amid the load commits are in flight, and records before and after each one are folded again.
    for number, value in enumerate(raising):
        scene.send(b"acme:raises", *([encoded("raises", 1, "viewstart")] if number == 0 else []), value)
        scene.send(b"acme:cursed", encoded("cursed", number + 1, custom_1=RAISES.decode()))
        wait_until(lambda so_far=2 * (number + 1): len(scene.rejected()) == so_far, "what raised is rejected")
    scene.send(b"acme:raises", encoded("raises", 2, "viewend", view_watch_time=7))
    scene.also["raises"] = (2, 7, "clean")
    feed.finish()
    scene.expect_truth()
    wait_until(lambda: len(scene.rejected()) == 2 * len(raising), "all of them are rejected")
    rejected = scene.rejected()
    assert {reason for reason, _, _ in rejected} == {"fold_failed"}
    assert [value for _, key, value in rejected if key == b"acme:raises"] == raising
    assert len(slot.events("started")) == 1
    assert len(slot.events("partition_taken_over")) == PARTITIONS
    assert slot.terminate() == 0


def test_a_due_row_that_cannot_be_decoded_is_rejected_and_the_rest_goes_on(scene: Scene) -> None:
    slot = scene.started()
    feed = scene.feed(seconds=2)
    feed.finish()
    scene.expect_truth()
    assert slot.terminate() == 0
    # What a version with a fault may have left; due while the next views come.
    row = pack(time.time_ns() // 1_000_000 + 1_000, b"no row")
    store = slot.stores_dir() / str(partition_of(b"acme:broken", PARTITIONS))
    change_position(store, lambda position: position, row, bytes([VIEWS.id]) + b"acme:broken")
    slot.start()
    scene.feed(seconds=1)
    scene.expect_truth()
    wait_until(lambda: len(scene.rejected()) == 1, "the row is rejected")
    assert scene.rejected() == [("fire_failed", b"acme:broken", b"no row")]
    assert slot.terminate() == 0


def test_many_keys_that_fail_at_once_end_no_slot(scene: Scene) -> None:
    for number in range(200):
        scene.send(b"acme:hostile-%d" % number, encoded(f"hostile-{number}", 1, custom_1=RAISES.decode()))
    slot = scene.started(program=PROGRAM)
    scene.feed(seconds=1)
    scene.expect_truth()
    wait_until(lambda: len(scene.rejected()) == 200, "all of them are rejected")
    assert slot.terminate() == 0


def test_a_release_that_fails_on_many_keys_stops_the_slot_instead_of_draining_its_input(scene: Scene) -> None:
    slot = scene.started(program=PROGRAM, PROCESSOR_VERSION="1")
    scene.send(b"acme:before", encoded("before", 1, "viewstart"), encoded("before", 2, "viewend"), partition=0)
    scene.also["before"] = (2, 0, "clean")
    scene.expect_truth()
    assert slot.terminate() == 0
    for number in range(100):
        scene.send(b"acme:hostile-%d" % number, encoded(f"hostile-{number}", 1, custom_1=RAISES.decode()), partition=0)
    slot.arm(PROCESSOR_VERSION="2")
    # A supervisor starts it again and again.
    for _ in range(2):
        slot.start()
        assert slot.ended() == 1
        assert "correct it or roll it back" in slot.last_line()
    assert len(scene.rejected()) <= 50


def test_a_view_behind_a_gap_is_not_truncated(scene: Scene) -> None:
    slot = scene.started()
    scene.feed(seconds=2)
    scene.send(
        b"acme:endless",
        encoded("endless", 1, "viewstart"),
        # The second is missing: the rest waits for it, until it is given up.
        *[encoded("endless", seq, custom_1="x" * 5_000) for seq in range(3, 203)],
    )
    scene.also["endless"] = (201, 0, "timeout")
    scene.expect_truth()
    row = newest(scene.rows.rows)["endless"]
    assert (row.truncated, row.seq_gaps) == (False, 1)
    assert slot.terminate() == 0


def test_input_that_retention_took_before_it_was_folded_stops_the_slot(scene: Scene) -> None:
    slot = scene.started()
    scene.feed(seconds=1).finish()
    scene.expect_truth()
    slot.kill()
    rows = observed(scene.rows.read())
    scene.feed(seconds=1).finish()
    admin = AdminClient({"bootstrap.servers": scene.broker.bootstrap})
    ends = [TopicPartition(topics.BEACONS.name, number, -1) for number in range(PARTITIONS)]
    for answer in admin.delete_records(ends).values():
        answer.result()
    slot.start()
    assert slot.ended() == 1
    assert "gone from Kafka (retention)" in slot.last_line()
    assert observed(scene.rows.read()) == rows
