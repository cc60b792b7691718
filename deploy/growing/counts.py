"""The numbers of partitions on the broker: read, raised, and awaited."""

import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from services.processor.engine.division import CannotGrow

_REQUEST_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.2
_VISIBLE_SECONDS_MAX: Final = 60.0


def counts(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
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


def request(admin: AdminClient, names: Iterable[str], wanted: int) -> None:
    """Asks for so many partitions of each topic that has fewer. Raises `CannotGrow`, `KafkaException`."""
    fewer = [name for name, count in counts(admin, names).items() if count < wanted]
    if fewer:
        for answer in admin.create_partitions([NewPartitions(name, wanted) for name in fewer]).values():
            answer.result()


def awaited(admin: AdminClient, names: Iterable[str], wanted: int) -> None:
    """Returns once all have so many partitions, with leaders and replicas in sync. Raises `CannotGrow`."""
    deadline = time.monotonic() + _VISIBLE_SECONDS_MAX
    while True:
        try:
            if set(counts(admin, names).values()) <= {wanted}:
                return
        except CannotGrow:
            if time.monotonic() >= deadline:
                raise
        if time.monotonic() >= deadline:
            raise CannotGrow(f"{', '.join(names)} did not become {wanted} partitions in {_VISIBLE_SECONDS_MAX} s")
        time.sleep(_RETRY_SECONDS)
