"""Kafka clients' common settings, and the check of topics at boot."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigEntry, ConfigResource
from confluent_kafka.admin._metadata import PartitionMetadata
from confluent_kafka.admin._resource import ResourceType

from services.rim.kafka.outages import Watch
from services.rim.kafka.security import for_librdkafka
from shared.settings import Settings
from shared.topics import Profile, Topic

log = structlog.get_logger(__name__)

BOOT_SECONDS_MAX = 30.0
#: Without an answer a question at boot is asked again after so long.
_AGAIN_SECONDS: Final = 5.0

#: Why a broker is not reached though it is there.
_REFUSES = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
#: `_DESTROY`: the client gave up its connection to a broker whose address is gone, with the request that waited there.
_AWAY = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._DESTROY})
#: Errors that come with a line in the client's log, which `kafka_outages` looks after.
_IN_LOG = _REFUSES | {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE}
#: What passes too when a consumer asks again, though the client does not say so of all of it: a leader that has moved, a topic
#: that was made a moment ago, and a pause of this process, after which the client joins its group again.
_PASSES = frozenset(
    {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError._MAX_POLL_EXCEEDED}
)
_CLIENT_LOGGER = logging.getLogger("librdkafka")
_CLIENT_LOGGER.addFilter(Watch())

#: Settings that correctness depends on must be as declared; the operator may change the others (retention, sizes).
#: A changelog that is deleted by time would lose its `meta`. Timestamps of clients would let one record finish every view.
#: An unclean leader lacks records that were acknowledged.
VERIFIED_SETTINGS: Final = ("cleanup.policy", "message.timestamp.type", "unclean.leader.election.enable")
#: With fewer replicas in sync, one broker's disk is all that a 200 means. More than declared is the operator's choice.
MIN_INSYNC: Final = "min.insync.replicas"
_MEND: Final = "set with `python -m deploy.topics --mend`"


class TopicsWrong(RuntimeError):
    """The broker's topics are not as `shared.topics` declares them; the text says which and how."""


def client_config(settings: Settings, client_id: str) -> dict[str, Any]:
    """What every Kafka client of this installation is given."""
    return {
        "bootstrap.servers": settings.kafka_bootstrap,
        "client.id": client_id,
        "broker.address.ttl": 5_000,
        "reconnect.backoff.max.ms": 1_000,
        "log_level": 4,
        # librdkafka's own lines come out as structured as ours.
        "logger": _CLIENT_LOGGER,
        **for_librdkafka(settings),
    }


def admin_config(settings: Settings, client_id: str) -> dict[str, Any]:
    """What a client is given that asks certain brokers again and again.

    librdkafka 2.16 that waits for a broker which is down calls for a connection, over and over, and so takes most of a core. A
    client that connects to all brokers has nothing to call for.
    """
    return {**client_config(settings, client_id), "enable.sparse.connections": False}


def session_config(session_ms: int) -> dict[str, int]:
    """The settings of a group's member: the silence that ends its session, and the time between its heartbeats."""
    return {"session.timeout.ms": session_ms, "heartbeat.interval.ms": max(100, session_ms // 5)}


def log_client_error(client: str) -> Callable[[KafkaError], None]:
    """An `error_cb` that logs librdkafka's errors. It skips connection errors: librdkafka reconnects, and its log reports them."""

    def callback(error: KafkaError) -> None:
        if error.code() in _IN_LOG and not error.fatal():
            return
        log.warning("kafka_client", client=client, code=error.name(), error=error.str(), fatal=error.fatal())

    return callback


def passes(error: KafkaError) -> bool:
    """Whether a consumer's error passes by itself: its client finds its way back, or is asked again."""
    return error.code() in _AWAY | _PASSES or bool(error.retriable())


def verify_topics(settings: Settings, topics: Iterable[Topic]) -> None:
    """Raises `TopicsWrong` unless every topic exists as the profile declares it; the text names the command that repairs it.

    Verified are partitions, replicas, `VERIFIED_SETTINGS`, and that `MIN_INSYNC` is at least as declared. A broker that is
    unreachable, refuses or does not answer within `BOOT_SECONDS_MAX` raises `TopicsWrong` too.
    """
    errors: list[KafkaError] = []
    admin = AdminClient(client_config(settings, "verify-topics") | {"error_cb": errors.append})
    wanted = {topic.name: topic for topic in topics}
    try:
        found = admin.list_topics(timeout=BOOT_SECONDS_MAX).topics
    except KafkaException as error:
        # The client reports by callback alone that it was not let in, and only now.
        admin.poll(0)
        why = [one.str() for one in errors if one.code() in _REFUSES] or [error.args[0].str()]
        raise TopicsWrong(f"no broker at {settings.kafka_bootstrap}: {why[-1]}") from error
    problems = [
        f"topic {name} is missing: create it with `python -m deploy.topics`, or grant the right to see it"
        for name in wanted
        if name not in found
    ]
    present = [topic for name, topic in wanted.items() if name in found]
    configs = _configs(admin, present)
    for topic in present:
        problems += _differences(topic, settings.profile, found[topic.name].partitions, configs[topic.name])
    if problems:
        raise TopicsWrong("; ".join(problems))


@dataclass(frozen=True)
class TopicAnswer:
    """The broker's answer for one topic, once it is there."""

    future: Future[dict[str, ConfigEntry]]

    def result(self) -> dict[str, str]:
        """The topic's settings as they are in force, by name. Raises `KafkaException`."""
        return {name: entry.value for name, entry in self.future.result().items() if entry.value is not None}


def describe_topics(admin: AdminClient, names: Iterable[str], *, seconds_max: float) -> dict[str, TopicAnswer]:
    """Asks for the settings of topics."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    answers = admin.describe_configs(resources, request_timeout=seconds_max) if resources else {}
    return {resource.name: TopicAnswer(answer) for resource, answer in answers.items()}


def _configs(admin: AdminClient, topics: list[Topic]) -> dict[str, dict[str, str]]:
    """The settings to verify, by topic; raises `TopicsWrong` when the broker does not return them.

    The client asks the controller, and as that Kafka names any of its brokers, also one that hangs. So while nothing comes the
    question is asked again, after a list of topics that may name another one. The first answer counts, or the first error.
    """
    until = time.monotonic() + BOOT_SECONDS_MAX
    asked: dict[Future[dict[str, ConfigEntry]], dict[str, TopicAnswer]] = {}
    done: set[Future[dict[str, ConfigEntry]]] = set()
    while topics and not done:
        left = max(_AGAIN_SECONDS, until - time.monotonic())
        question = describe_topics(admin, [topic.name for topic in topics], seconds_max=left)
        asked |= {answer.future: question for answer in question.values()}
        done, _ = wait(asked, timeout=_AGAIN_SECONDS, return_when=FIRST_COMPLETED)
        if not done:
            with suppress(KafkaException):
                admin.list_topics(timeout=_AGAIN_SECONDS)
    configs = {}
    # The answers of one question come together.
    for name, answer in asked[done.pop()].items() if done else ():
        try:
            configs[name] = answer.result()
        except KafkaException as error:
            if error.args[0].code() in _AWAY:
                raise TopicsWrong(f"no broker answers: {error.args[0].str()}") from error
            raise TopicsWrong(f"the settings of topic {name} cannot be read: {error.args[0].str()}") from error
    return configs


def _of_another_count(topic: Topic, profile: Profile, found: int) -> str:
    """What is to be done about a topic with another number of partitions than declared."""
    if not topic.as_beacons:
        return "(the count of this topic never changes)"
    first = profile.view_partitions
    # State is divided by multiplication alone.
    wanted = max(topic.partitions(profile), -(-found // first) * first)
    if found < topic.partitions(profile):
        return f"(run `python -m deploy.topics grow beacons {wanted}`: docs/growing.md)"
    return (
        f"(run `python -m deploy.topics grow beacons {wanted}`, which moves what has not moved yet, then set"
        f" PLAYHEAD_BEACON_PARTITIONS={wanted} for every service: docs/growing.md)"
    )


def _differences(
    topic: Topic, profile: Profile, partitions: Mapping[int, PartitionMetadata], config: Mapping[str, str]
) -> list[str]:
    problems = []
    # A changelog has its new partitions before the inputs do, while state is copied to them: slots do not read those.
    is_growing = topic.as_beacons and topic.cleanup == "compact" and len(partitions) > topic.partitions(profile)
    if len(partitions) != topic.partitions(profile) and not is_growing:
        problems.append(
            f"topic {topic.name} has {len(partitions)} partitions, profile {profile.name} declares"
            f" {topic.partitions(profile)} {_of_another_count(topic, profile, len(partitions))}"
        )
    replicas = min((len(one.replicas) for one in partitions.values()), default=profile.replication_factor)
    if replicas < profile.replication_factor:
        problems.append(
            f"topic {topic.name} has {replicas} replicas, profile {profile.name} declares {profile.replication_factor}:"
            " add them with `kafka-reassign-partitions.sh`, or choose another PLAYHEAD_TOPICS_PROFILE"
        )
    declared = topic.config(profile)
    problems += [
        f"topic {topic.name} has {setting}={config[setting]}, declared is {declared[setting]}: {_MEND}"
        for setting in VERIFIED_SETTINGS
        if config[setting] != declared[setting]
    ]
    if int(config[MIN_INSYNC]) < int(declared[MIN_INSYNC]):
        problems.append(
            f"topic {topic.name} has {MIN_INSYNC}={config[MIN_INSYNC]}, declared is at least {declared[MIN_INSYNC]}: {_MEND}"
        )
    return problems
