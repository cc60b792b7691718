"""What an operator corrects: an input that was deleted and created again, clocks that are ahead, and the state itself."""

import re
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from deploy.topics import create_topics
from services.processor.catalogue import APPLICATIONS
from services.processor.runtime.operations import corrections
from services.processor.settings import ProcessorSettings
from shared import topics
from tests.integration.parts.failing import Scene
from tests.integration.parts.installed import PARTITIONS, kafka, variables
from tests.integration.parts.slots import wait_until
from tests.integration.processor.operators.commanding import Commands

pytestmark = pytest.mark.integration

NAME = topics.BEACONS.name


def command(scene: Scene, *arguments: str) -> tuple[int, Any]:
    """The exit code of a command, with its JSON or its error."""
    return Commands(scene.bootstrap, scene.folder).run(*arguments)


def create_again(scene: Scene) -> None:
    """Deletes topic `beacons` and creates it again."""
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    admin.delete_topics([NAME])[NAME].result()
    wait_until(lambda: NAME not in admin.list_topics(timeout=10).topics, "the topic is gone")
    create_topics(kafka(scene.bootstrap), [topics.BEACONS])


def leader_epoch(scene: Scene) -> int:
    """Of the first partition; -1 while nobody leads it."""
    at = TopicPartition(NAME, 0)
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    answer = admin.list_offsets({at: OffsetSpec.latest()}, request_timeout=10)[at]
    return -1 if answer.exception() is not None else answer.result().leader_epoch


def test_an_input_that_was_created_again_stops_the_slot_until_a_command_begins_with_it(scene: Scene) -> None:
    slot = scene.started()
    scene.feed(seconds=1)
    scene.expect_truth()
    assert command(scene, "begin-topic", NAME)[0] == 1, "it is the topic that the slot was folded from"
    # Under a slot at work, which is ready.
    create_again(scene)
    assert slot.ended() == 1
    assert f"python -m services.processor begin-topic {NAME}" in slot.last_line()
    # What comes meanwhile lies where offsets of the former topic were.
    feed = scene.feed(seconds=1)
    feed.finish()
    slot.start()
    assert slot.ended() == 1
    assert f"python -m services.processor begin-topic {NAME}" in slot.last_line()
    code, positions = command(scene, "begin-topic", NAME)
    assert code == 0, positions
    assert [one["partition"] for one in positions] == list(range(PARTITIONS))
    assert all(NAME not in one["next_offsets"] for one in positions)
    slot.start()
    scene.expect_truth()
    assert slot.terminate() == 0


def test_a_log_that_was_cut_off_after_it_was_folded_stops_the_slot_until_it_continues_from_there(
    scene: Scene,
) -> None:
    """A broker that was killed and whose disk lost a tail: it is the leader all the same, as after an unclean election."""
    slot = scene.started()
    scene.feed(seconds=1)
    scene.expect_truth()
    assert slot.terminate() == 0
    former = leader_epoch(scene)
    scene.broker.kill()
    log = scene.broker.log_file.parent / "data" / f"{NAME}-0" / f"{0:020}.log"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size // 2)
    scene.broker.start()
    # Until it is registered again, it takes itself for the leader that it was: what it appends then shows no other epoch.
    wait_until(lambda: leader_epoch(scene) > former, "the broker leads again")
    # So many that the former offset exists again, with another record.
    for _ in range(2):
        scene.feed(seconds=1).finish()
    slot.start()
    assert slot.ended() == 1
    found = re.search(rf"{NAME}/0: the log was cut off .* broker end offset is (\d+)", slot.last_line())
    assert found, slot.last_line()
    assert command(scene, "begin-topic", NAME, "--partition", "0", "--offset", found[1])[0] == 0
    slot.start()
    scene.expect_truth()
    assert slot.terminate() == 0


def test_clocks_that_are_ahead_are_listed_and_set_back_under_a_slot_at_work(scene: Scene) -> None:
    slot = scene.started()
    scene.feed(seconds=1)
    scene.expect_truth()
    slot.kill()
    settings = ProcessorSettings.load(variables(scene.bootstrap))
    ahead_ms, began_at = time.time_ns() // 1_000_000 + 3_600_000, time.monotonic()
    corrections._correct(
        settings,
        APPLICATIONS["video_views"]({}),
        range(PARTITIONS),
        lambda meta: msgspec.structs.replace(meta, clock_ms=ahead_ms),
    )
    slot.start()
    wait_until(slot.is_ready, "the slot is ready")
    code, listed = command(scene, "clock")
    assert code == 0, listed
    assert len(listed) == PARTITIONS
    # A slot that is ready lets its clocks run on, and commits them with what becomes due.
    latest_ms = ahead_ms + (time.monotonic() - began_at) * 1000
    assert all(ahead_ms <= one["clock_ms"] <= latest_ms for one in listed), (ahead_ms, listed)
    now = datetime.fromtimestamp(time.time(), UTC)
    code, changed = command(scene, "clock", "--set-back", now.isoformat())
    assert code == 0, changed
    assert [one["clock_ms"] for one in changed] == [round(now.timestamp() * 1000)] * PARTITIONS
    # Its producers were fenced: it takes its partitions over again, and no beacon is late by the former clock.
    scene.feed(seconds=1)
    scene.expect_truth()
    assert command(scene, "clock", "--set-back", now.isoformat(), "--partition", "99")[0] == 1
    assert slot.terminate() == 0
