"""Creates the topics that `shared.topics` declares: `python -m deploy.topics`, or `--check` to verify only.

Existing topics are not changed; if one differs from its declaration, the command reports the difference and exits 1. `--mend` sets
those settings of existing topics that services verify at boot. Partitions and replicas are not changed; `grow` raises the number of
partitions (`deploy.growing`).
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from deploy.growing import command as growing
from services.rim.kafka.connection import (
    MIN_INSYNC,
    VERIFIED_SETTINGS,
    TopicsWrong,
    client_config,
    describe_topics,
    verify_topics,
)
from services.rim.process.secrets import with_secrets
from shared import topics
from shared.settings import Settings, SettingsError
from shared.topics import Topic

_T = TypeVar("_T")
#: How long a broker that is starting is waited for, seconds.
BROKER_SECONDS_MAX: Final = 60.0
_REQUEST_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.5
#: How long a fresh topic, or a changed setting, may take to be seen by everyone, seconds.
_VISIBLE_SECONDS_MAX: Final = 60.0


def create_topics(settings: Settings, wanted: Iterable[Topic] = topics.ALL, *, mended: bool = False) -> list[str]:
    """Creates those of `wanted` that are missing and verifies all; the names of the created. `mended`: some were changed just now.

    Waits for a broker that is still starting. Raises `TopicsWrong` when no broker answers in time, when a topic cannot be created
    or when one differs from its declaration.
    """
    # Each once: a request that names one twice is answered once, and the client, which counts on two, crashes.
    declared = list({topic.name: topic for topic in wanted}.values())
    admin = AdminClient(client_config(settings, "deploy-topics"))
    present = _present(admin, settings)
    missing = [topic for topic in declared if topic.name not in present]
    # All requested at once, then each answer is awaited.
    answers = _ask(admin, settings, missing)
    created = [topic.name for topic in missing if _create(admin, settings, topic, answers[topic.name])]
    _verify(settings, declared, fresh=mended or bool(created))
    _await_leaders(admin, settings, [topic for topic in declared if topic.name in created])
    return created


def _present(admin: AdminClient, settings: Settings) -> set[str]:
    deadline = time.monotonic() + BROKER_SECONDS_MAX
    while True:
        try:
            return set(admin.list_topics(timeout=_REQUEST_SECONDS).topics)
        except KafkaException as error:
            if time.monotonic() >= deadline:
                raise TopicsWrong(f"no broker at {settings.kafka_bootstrap}: {error.args[0].str()}") from error
        time.sleep(_RETRY_SECONDS)


def _ask(admin: AdminClient, settings: Settings, missing: list[Topic]) -> dict[str, Future[None]]:
    profile = settings.profile
    new = [
        NewTopic(
            topic.name,
            num_partitions=topic.partitions(profile),
            replication_factor=profile.replication_factor,
            config=topic.config(profile),
        )
        for topic in missing
    ]
    limits = {"operation_timeout": _REQUEST_SECONDS, "request_timeout": 2 * _REQUEST_SECONDS}
    return admin.create_topics(new, **limits) if new else {}


def _create(admin: AdminClient, settings: Settings, topic: Topic, answer: Future[None]) -> bool:
    """Whether this process made the topic; False when someone else was faster."""
    deadline = time.monotonic() + BROKER_SECONDS_MAX
    is_late = False
    while True:
        try:
            answer.result()
        except KafkaException as error:
            problem: KafkaError = error.args[0]
            if problem.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                # A request that nobody waited for any longer may have been carried out since.
                return is_late
            # A controller that gets no CPU is late, as one that is starting.
            is_late = is_late or problem.code() == KafkaError._TIMED_OUT
            if not (problem.code() == KafkaError._TIMED_OUT or problem.retriable()) or time.monotonic() >= deadline:
                raise TopicsWrong(f"topic {topic.name} cannot be created: {problem.str()}") from error
        else:
            return True
        time.sleep(_RETRY_SECONDS)
        answer = _ask(admin, settings, [topic])[topic.name]


def _verify(settings: Settings, declared: list[Topic], *, fresh: bool) -> None:
    # What was made or changed a moment ago may not be in every broker's metadata yet; all else stays as it is.
    deadline = time.monotonic() + (_VISIBLE_SECONDS_MAX if fresh else 0.0)
    while True:
        try:
            verify_topics(settings, declared)
        except TopicsWrong:
            if time.monotonic() >= deadline:
                raise
        else:
            return
        time.sleep(_RETRY_SECONDS)


def _await_leaders(admin: AdminClient, settings: Settings, fresh: list[Topic]) -> None:
    """Returns once every partition of the fresh topics can be read: metadata name a leader before it serves."""
    waiting = {TopicPartition(topic.name, n) for topic in fresh for n in range(topic.partitions(settings.profile))}
    deadline = time.monotonic() + _VISIBLE_SECONDS_MAX
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    while waiting:
        answers = admin.list_offsets(dict.fromkeys(waiting, latest), request_timeout=_REQUEST_SECONDS)
        for partition, answer in answers.items():
            try:
                answer.result()
            except KafkaException as error:
                if time.monotonic() >= deadline:
                    where = f"{partition.topic}/{partition.partition}"
                    raise TopicsWrong(f"{where} has no leader yet: {error.args[0].str()}") from error
            else:
                waiting.discard(partition)
        if waiting:
            time.sleep(_RETRY_SECONDS)


#: How long at most a record stays beyond its retention, or its deletion.
_OF_DELETION: Final = ("segment.ms", "max.compaction.lag.ms")


def mend_topics(settings: Settings, declared: Iterable[Topic] = topics.ALL) -> list[str]:
    """Sets what services verify at boot, and what bounds how long deleted data stays, to what is declared.

    Returns `topic: setting=value` for each that was changed.

    A larger `min.insync.replicas` than declared stays. Raises `TopicsWrong` when the broker refuses or does not answer.
    """
    admin = AdminClient(client_config(settings, "deploy-topics"))
    present = _present(admin, settings)
    wanted = {topic.name: topic.config(settings.profile) for topic in declared if topic.name in present}
    changes: dict[str, dict[str, str]] = {}
    for name, answer in describe_topics(admin, wanted, seconds_max=_REQUEST_SECONDS).items():
        found = _result(name, answer.result)
        mended = [one for one in (*VERIFIED_SETTINGS, *_OF_DELETION) if one in wanted[name]]
        differs: dict[str, str] = {one: wanted[name][one] for one in mended if found[one] != wanted[name][one]}
        if int(found[MIN_INSYNC]) < int(wanted[name][MIN_INSYNC]):
            differs[MIN_INSYNC] = wanted[name][MIN_INSYNC]
        if differs:
            changes[name] = differs
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            name,
            incremental_configs=[
                ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
                for setting, value in differs.items()
            ],
        )
        for name, differs in changes.items()
    ]
    if resources:
        for resource, done in admin.incremental_alter_configs(resources, request_timeout=_REQUEST_SECONDS).items():
            _result(resource.name, done.result)
    return [f"{name}: {setting}={value}" for name, differs in changes.items() for setting, value in differs.items()]


def _result(name: str, result: Callable[[], _T]) -> _T:
    try:
        return result()
    except KafkaException as error:
        raise TopicsWrong(f"the settings of topic {name}: {error.args[0].str()}") from error


def main(arguments: Sequence[str]) -> int:
    """The command; 0 when every topic is as declared."""
    if arguments[:1] == ["grow"]:
        return growing.main(arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m deploy.topics", description=__doc__)
    parser.add_argument("--check", action="store_true", help="create nothing, only verify")
    parser.add_argument("--mend", action="store_true", help="set what services verify at boot to what is declared")
    chosen = parser.parse_args(arguments)
    try:
        settings = Settings.load(with_secrets(Settings, os.environ))
        declared = [settings.named(topic) for topic in topics.ALL]
        mended = mend_topics(settings, declared) if chosen.mend else []
        for change in mended:
            print(f"mended {change}")
        created = []
        if chosen.check:
            _verify(settings, declared, fresh=bool(mended))
        else:
            created = create_topics(settings, declared, mended=bool(mended))
    except (TopicsWrong, SettingsError) as problem:
        print(f"topics: {problem}", file=sys.stderr)
        return 1
    for topic in declared:
        state = "created" if topic.name in created else "is there"
        partitions = topic.partitions(settings.profile)
        print(f"{topic.name}: {state}, {partitions} partitions, {topic.cleanup}, {topic.owner}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
