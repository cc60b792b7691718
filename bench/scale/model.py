"""The model: what the protocol costs, as a sum of terms, each with a factor that is fitted to what was measured. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from services.processor.runtime.kafka import leaders, ownership, topic_ids
from services.processor.runtime.slot import unowned

#: Inputs and changelog of `video_views`: a slot asks for both.
_TOPICS_ASKED = 2


class Point(NamedTuple):
    """One measurement: of an installation of so many slots and partitions, what was used (cores)."""

    slots: int
    partitions: int
    #: Heartbeats that all replicas together read a second.
    beats_read: float
    #: Slots that answer lookups.
    looking: int
    commits: float
    broker: float
    of_slots: float


#: The terms of the CPU of all slots together, and of the broker's, by name: how large each is in an installation.
SLOT_TERMS = (
    "a slot",
    "a partition",
    "a partition described/s",
    "a commit/s",
    "a heartbeat read/s",
    "a member described/s",
)
BROKER_TERMS = ("fixed", *SLOT_TERMS)


def broker_terms(point: Point) -> list[float]:
    """As in `BROKER_TERMS`."""
    return [1.0, *slot_terms(point)]


def slot_terms(point: Point) -> list[float]:
    """As in `SLOT_TERMS`. Three grow with the square of an installation.

    Every replica reads the heartbeats of all. Every slot gets a description of all partitions of its topics, since it asks for
    their ids and leaders. It gets one of all members of the group, more often where it answers lookups.
    """
    return [
        float(point.slots),
        float(point.partitions),
        partitions_described(point.slots, point.partitions),
        point.commits,
        point.beats_read,
        members_described(point.slots, point.looking),
    ]


def partitions_described(slots: int, partitions: int) -> float:
    """Partitions that the broker describes a second, to all slots together."""
    return slots * partitions * (_TOPICS_ASKED / topic_ids.ASK_SECONDS + 1 / leaders.ASK_SECONDS)


def members_described(slots: int, looking: int) -> float:
    """Members of the group that the broker describes a second, to all slots together, of which some answer lookups."""
    return slots * (slots / unowned.ASK_SECONDS + looking / (ownership.ASK_SECONDS + ownership.PACE_SECONDS))


def fitted(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """The factors of least relative error, none below 0: those that would be are 0, and the rest is fitted again."""
    weights = 1.0 / np.array(values)
    matrix = np.array(rows) * weights[:, None]
    used = list(range(matrix.shape[1]))
    factors = np.zeros(matrix.shape[1])
    while used:
        found, *_ = np.linalg.lstsq(matrix[:, used], np.ones(len(values)), rcond=None)
        if (found >= 0).all():
            factors[used] = found
            break
        used.remove(used[int(np.argmin(found))])
    return [float(one) for one in factors]


def value(row: Sequence[float], factors: Sequence[float]) -> float:
    """What the model says of one installation."""
    return float(np.dot(row, factors))


def error(rows: Sequence[Sequence[float]], values: Sequence[float], factors: Sequence[float]) -> float:
    """The largest relative error of the model at a measured point."""
    found = np.array(rows) @ np.array(factors)
    return float(np.max(np.abs(found / np.array(values) - 1.0)))
