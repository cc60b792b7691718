"""What Kafka refuses is borne for a stated time, then the slot ends and its last line says why; granted, nothing is lost."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from shared import topics
from tests.integration.parts.failing import Scene
from tests.integration.parts.slots import Slot, wait_until

pytestmark = pytest.mark.integration

SOON = {"PROCESSOR_REFUSED_MS_MAX": "1500"}


@contextmanager
def denied(scene: Scene, kind: ResourceType, name: str, operation: AclOperation) -> Iterator[None]:
    """Nobody may do this, for a while; everything else everybody may, as where there are no rules."""
    admin = AdminClient({"bootstrap.servers": scene.broker.bootstrap})
    rule = AclBinding(kind, name, ResourcePatternType.LITERAL, "User:*", "*", operation, AclPermissionType.DENY)
    rest = AclBinding(kind, name, ResourcePatternType.LITERAL, "User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW)
    for answer in admin.create_acls([rest, rule]).values():
        answer.result()
    try:
        yield
    finally:
        rules = AclBindingFilter(
            kind, name, ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        for answers in admin.delete_acls([rules]).values():
            answers.result()


def last_words(slot: Slot) -> str:
    assert slot.ended() == 1, slot.log_tail()
    last = json.loads(slot.last_line())
    assert last["event"] == "failed", last
    return str(last["error"])


def test_a_commit_that_kafka_refuses_ends_the_slot(scene: Scene) -> None:
    slot = scene.started()
    with denied(scene, ResourceType.TOPIC, topics.VIEWS.name, AclOperation.WRITE):
        scene.feed(seconds=2)
        words = last_words(slot)
    assert "Kafka will not take a commit" in words
    assert "TOPIC_AUTHORIZATION_FAILED" in words
    slot.start()
    scene.expect_truth()
    assert slot.terminate() == 0


def test_rows_that_the_broker_finds_too_large_end_the_slot(scene: Scene) -> None:
    # Reported at once; or at the next try, where the client reports only that deliveries failed.
    admin = AdminClient({"bootstrap.servers": scene.broker.bootstrap})

    def limit(kind: AlterConfigOpType) -> None:
        entry = ConfigEntry("max.message.bytes", "200", incremental_operation=kind)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topics.VIEWS.name, incremental_configs=[entry])
        for answer in admin.incremental_alter_configs([resource]).values():
            answer.result()

    slot = scene.started()
    limit(AlterConfigOpType.SET)
    scene.feed(seconds=2)
    assert "MSG_SIZE_TOO_LARGE" in last_words(slot)
    limit(AlterConfigOpType.DELETE)
    slot.start()
    scene.expect_truth()
    assert slot.terminate() == 0


@pytest.mark.parametrize(
    ("kind", "name", "operation", "expected"),
    [
        (ResourceType.TRANSACTIONAL_ID, "video_views.3", AclOperation.WRITE, "the transactions of video_views.3"),
        (ResourceType.GROUP, "video_views", AclOperation.READ, "the group"),
        (ResourceType.TOPIC, topics.BEACONS.name, AclOperation.READ, "beacons/"),
        (
            ResourceType.TOPIC,
            topics.VIDEO_VIEWS_CHANGELOG.name,
            AclOperation.READ,
            "the changelog, video_views.changelog/",
        ),
    ],
    ids=["the fence", "the group", "the input", "the changelog"],
)
def test_what_a_takeover_needs_and_kafka_refuses_is_borne_for_a_time_and_ends_the_slot(
    scene: Scene, kind: ResourceType, name: str, operation: AclOperation, expected: str
) -> None:
    # Something to replay: a changelog that is empty is not read.
    slot = scene.started(**SOON)
    scene.feed(seconds=1).finish()
    scene.expect_truth()
    slot.kill()
    shutil.rmtree(slot.state_dir)
    scene.feed(seconds=1).finish()
    with denied(scene, kind, name, operation):
        slot.start()
        words = last_words(slot)
    assert f"Kafka has refused {expected}" in words
    assert "AUTHORIZATION_FAILED" in words
    slot.start()
    scene.expect_truth()
    assert slot.terminate() == 0


def test_heartbeats_that_kafka_refuses_end_a_slot_with_standbys(scene: Scene) -> None:
    slot = scene.slot(PROCESSOR_STANDBYS="1", **SOON)
    with denied(scene, ResourceType.TOPIC, topics.PRESENCE.name, AclOperation.WRITE):
        slot.start()
        words = last_words(slot)
    assert "Kafka has refused presence" in words
    assert "TOPIC_AUTHORIZATION_FAILED" in words
    slot.start()
    wait_until(slot.is_ready, "the slot is ready")
    assert slot.terminate() == 0


def test_a_right_that_is_granted_in_time_ends_nothing(scene: Scene) -> None:
    slot = scene.slot()
    with denied(scene, ResourceType.TRANSACTIONAL_ID, "video_views.3", AclOperation.WRITE):
        slot.start()
        scene.feed(seconds=1)
        wait_until(lambda: len(slot.events("refused")) >= 2, "it is refused, and asks again")
    scene.expect_truth()
    assert slot.terminate() == 0
