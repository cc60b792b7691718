"""`python -m deploy.topics grow beacons 16`: more partitions for a topic, and the state of its application moved to them.

The slots of the application are stopped meanwhile; producers go on. It may be killed and run again at any time: what is done is
done (docs/growing.md). `--dry-run` looks whether it would begin, and what it would move.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from services.processor.catalogue import APPLICATIONS
from services.processor.engine.application.application import Application
from services.processor.engine.division import CannotGrow
from services.processor.engine.state.rows import NewerFormat
from services.processor.runtime.growing import Moved, move, sources
from services.processor.runtime.kafka.reading import ReadingFailed
from services.processor.settings import ProcessorSettings
from services.rim.kafka.connection import client_config
from services.rim.process.crash_points import CrashPoints
from services.rim.process.secrets import with_secrets
from shared import codec
from shared.codec import Undecodable
from shared.settings import SettingsError
from shared.topics import PRESENCE

_REQUEST_SECONDS: Final = 10.0
#: How long members of the group are waited for to leave, seconds: a slot that was killed stays one for its session.
_LEAVE_SECONDS_MAX: Final = 25.0
_RETRY_SECONDS: Final = 0.2
_VISIBLE_SECONDS_MAX: Final = 60.0
#: A replica sends five heartbeats a second.
_SILENT_MS: Final = 3_000


@dataclass(frozen=True)
class Growing:
    """One growth: of whose topics, to how many partitions."""

    settings: ProcessorSettings
    application: Application
    partitions: int

    @property
    def names(self) -> list[str]:
        """The topics that grow together."""
        return [topic.name for topic in (*self.application.inputs, self.application.changelog)]


def main(arguments: Sequence[str]) -> int:
    """The command; 0 when the state is divided among so many partitions, 1 when it is not, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m deploy.topics grow", description=__doc__)
    parser.add_argument("topic", help="the input whose partitions grow, with the changelog of its application")
    parser.add_argument("partitions", type=int, help="a multiple of their present number")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, only say what would be done")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="that move partitions at the same time"
    )
    chosen = parser.parse_args(arguments)
    try:
        growing = _growing(chosen.topic, chosen.partitions)
        _run(growing, processes=max(1, chosen.processes), is_dry=chosen.dry_run)
    except SettingsError as problem:
        print(f"grow: {problem}", file=sys.stderr)
        return 2
    except (CannotGrow, ReadingFailed, NewerFormat) as problem:
        print(f"grow: {problem}", file=sys.stderr)
        return 1
    except KafkaException as problem:
        print(f"grow: {problem.args[0].str()}; run it again", file=sys.stderr)
        return 1
    except BrokenProcessPool:
        print("grow: a process that moved a partition was killed; run it again", file=sys.stderr)
        return 1
    return 0


def _growing(topic: str, partitions: int) -> Growing:
    environ = with_secrets(ProcessorSettings, os.environ)
    settings = ProcessorSettings.load(environ)
    for make in APPLICATIONS.values():
        application = make(environ)
        if application.growth is not None and topic in {one.name for one in application.inputs}:
            return Growing(settings, application, partitions)
    raise CannotGrow(f"the partitions of topic {topic} cannot grow: docs/growing.md")


def _run(growing: Growing, *, processes: int, is_dry: bool) -> None:
    settings, application, wanted = growing.settings, growing.application, growing.partitions
    admin = AdminClient(client_config(settings, "deploy-growing"))
    present = _counts(admin, growing.names)
    too_many = [f"{name} has {count}" for name, count in present.items() if count > wanted]
    if too_many:
        raise CannotGrow(f"partitions never become fewer: {', '.join(too_many)}")
    _await_silence(admin, growing, seconds_max=0.0 if is_dry else _LEAVE_SECONDS_MAX)
    began = time.monotonic()
    to_move = sources(settings, application, min(present.values()), wanted)
    for name, count in present.items():
        print(f"{name}: {count} partitions" + ("" if count == wanted else f", to become {wanted}"))
    print(f"state of {len(to_move)} partitions to be divided among {wanted}", flush=True)
    if is_dry:
        return
    _raise(admin, {name for name, count in present.items() if count < wanted}, wanted)
    CrashPoints(settings.crash_at).reach("grow_raised")
    for moved in _moved(to_move, growing, processes):
        print(
            f"partition {moved.partition}: {moved.rows} of {moved.of_rows} rows moved in {moved.seconds:.1f} s",
            flush=True,
        )
    print(
        f"done in {time.monotonic() - began:.1f} s: set PLAYHEAD_BEACON_PARTITIONS={wanted} for every service, start the slots,"
        " then restart the other services one after the other"
    )


def _counts(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    """The number of partitions of each topic. Raises `CannotGrow` where one is missing or lacks replicas in sync."""
    found = admin.list_topics(timeout=_REQUEST_SECONDS).topics
    problems = [f"topic {name} is missing" for name in names if name not in found]
    for name in names:
        for number, partition in (found[name].partitions if name in found else {}).items():
            if partition.leader < 0 or len(partition.isrs) < len(partition.replicas):
                problems.append(
                    f"{name}/{number} has {len(partition.isrs)} of {len(partition.replicas)} replicas in sync"
                )
    if problems:
        raise CannotGrow("; ".join(problems))
    return {name: len(found[name].partitions) for name in names}


def _await_silence(admin: AdminClient, growing: Growing, *, seconds_max: float) -> None:
    """Returns once no slot and no standby of the application runs. Raises `CannotGrow`."""
    deadline = time.monotonic() + seconds_max
    while running := _running(admin, growing):
        if time.monotonic() >= deadline:
            raise CannotGrow(
                f"{growing.application.name} is at work: stop its slots and standbys ({', '.join(sorted(running))})"
            )
        time.sleep(_RETRY_SECONDS)


def _running(admin: AdminClient, growing: Growing) -> set[str]:
    group = growing.application.name
    described = admin.describe_consumer_groups([group], request_timeout=_REQUEST_SECONDS)[group].result()
    return {f"member {one.group_instance_id or one.client_id}" for one in described.members} | _heard(growing)


def _heard(growing: Growing) -> set[str]:
    """Replicas of the application that have sent a heartbeat lately."""
    consumer = Consumer(
        {
            **client_config(growing.settings, "deploy-growing"),
            # Required by the client; nothing is committed.
            "group.id": f"{growing.application.name}.growing",
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
            if beat.application == growing.application.name:
                found.add(f"replica {beat.slot}/{beat.replica}")
        return found
    finally:
        consumer.close()


def _raise(admin: AdminClient, names: set[str], wanted: int) -> None:
    """Gives topics so many partitions, and waits until all have leaders and replicas in sync."""
    if names:
        for answer in admin.create_partitions([NewPartitions(name, wanted) for name in sorted(names)]).values():
            answer.result()
    deadline = time.monotonic() + _VISIBLE_SECONDS_MAX
    while True:
        try:
            if set(_counts(admin, names).values()) <= {wanted}:
                return
        except CannotGrow:
            if time.monotonic() >= deadline:
                raise
        if time.monotonic() >= deadline:
            raise CannotGrow(
                f"{', '.join(sorted(names))} did not become {wanted} partitions in {_VISIBLE_SECONDS_MAX} s"
            )
        time.sleep(_RETRY_SECONDS)


def _moved(to_move: list[int], growing: Growing, processes: int) -> Iterable[Moved]:
    topic = growing.application.inputs[0].name
    if min(processes, len(to_move)) <= 1:
        points = CrashPoints(growing.settings.crash_at)
        yield from (
            move(growing.settings, growing.application, partition, growing.partitions, points) for partition in to_move
        )
        return
    # Decoding and dividing hold the interpreter: processes, not threads. Librdkafka does not survive a fork.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_move_one, [(topic, partition, growing.partitions) for partition in to_move])


def _move_one(task: tuple[str, int, int]) -> Moved:
    topic, partition, partitions = task
    growing = _growing(topic, partitions)
    return move(growing.settings, growing.application, partition, partitions, CrashPoints(growing.settings.crash_at))
