"""Whether slots or standbys of an application run: members of its group, and replicas whose heartbeats are heard."""

import time
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.growing.growth import Growing
from services.processor.engine.division import CannotGrow
from services.rim.kafka.connection import client_config
from shared import codec
from shared.codec import Undecodable
from shared.topics import PRESENCE

_REQUEST_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.2
#: A replica sends five heartbeats a second, and counts as dead to the others after so long (`standby.roles`).
_SILENT_MS: Final = 1_500


def await_silence(admin: AdminClient, growing: Growing, *, seconds_max: float) -> None:
    """Returns once none runs. A slot that was killed stays a member for its session. Raises `CannotGrow`."""
    deadline = time.monotonic() + seconds_max
    while running := at_work(admin, growing):
        if time.monotonic() >= deadline:
            raise CannotGrow(
                f"{growing.application.id} is at work, and nothing has grown: stop its slots and standbys"
                f" ({', '.join(sorted(running))}), and run it again"
            )
        time.sleep(_RETRY_SECONDS)


def at_work(admin: AdminClient, growing: Growing) -> set[str]:
    """Who runs, each in a few words."""
    group = growing.application.id
    described = admin.describe_consumer_groups([group], request_timeout=_REQUEST_SECONDS)[group].result()
    members = {f"member {one.group_instance_id or one.client_id}" for one in described.members}
    # Heartbeats are read last: that takes longer.
    return members or _heard(growing)


def _heard(growing: Growing) -> set[str]:
    """Replicas of the application that have sent a heartbeat lately."""
    consumer = Consumer(
        {
            **client_config(growing.settings, "deploy-growing"),
            # Required by the client; nothing is committed.
            "group.id": f"{growing.application.id}.growing",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        since_ms = time.time_ns() // 1_000_000 - _SILENT_MS
        (begin,) = consumer.offsets_for_times([TopicPartition(PRESENCE.name, 0, since_ms)], timeout=_REQUEST_SECONDS)
        if begin.offset < 0:
            return set()
        consumer.assign([begin])
        found = set()
        while (message := consumer.poll(_REQUEST_SECONDS)) is not None and message.error() is None:
            try:
                beat = codec.PRESENCE.decode(message.value() or b"")
            except Undecodable:
                continue
            if beat.application == growing.application.id:
                found.add(f"replica {beat.slot}/{beat.replica}")
        return found
    finally:
        consumer.close()
