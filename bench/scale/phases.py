"""The phases: each starts a broker and slots, and measures what they use in one state. Each takes minutes on two cores."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.scale.group import Members, Settled
from bench.scale.host import profile
from bench.scale.model import Point
from bench.scale.running import Fleet, cores_of
from bench.state.open_views import DAY_MS, beacon
from deploy.local.broker import Broker
from deploy.local.process import wait_until
from services.processor.catalogue import APPLICATIONS
from shared import codec, topics
from shared.partitioning import partition_of, view_key
from shared.schemas.presence import SCHEMA_VERSION, Presence

#: How long each state is measured, and is left alone before.
MEASURED_SECONDS: Final = 8.0
CALM_SECONDS: Final = 2.0
#: Beacons a second of each partition, each committed alone: fewer than it might commit, so that two cores keep up.
BEACONS_A_SECOND: Final = 2
#: As of 150 replicas.
OTHERS_BEATS_A_SECOND: Final = 750
#: Of the phase with commits: few, so that those are most of what is measured.
COMMITTING_SLOTS: Final = 2
_LOAD_SECONDS_MAX: Final = 120.0
#: With the sessions of tests, a broker that makes thousands of partitions, or slots that start by the dozen, on two cores would be
#: taken for dead: their heartbeats wait for a core. A broker that is fenced leads nothing, and no transaction begins.
_PATIENT: Final = {"broker.session.timeout.ms": "30000", "broker.heartbeat.interval.ms": "2000"}
_QUIET: Final = {
    "PLAYHEAD_LOG_LEVEL": "warning",
    "VIDEO_VIEWS_FINISH_SILENT_MS": str(DAY_MS),
    "PROCESSOR_SESSION_MS": "20000",
}
_HEARTBEATS: Final = {"PROCESSOR_STANDBYS": "1"}
_LOOKUPS: Final = {"PROCESSOR_LOOKUP_TOKEN": "scale-" * 6}


class Measured(NamedTuple):
    """A point, with what the model does not say."""

    what: str
    point: Point
    heartbeats: float
    connections: int
    pss_mib: float
    #: Until the last of these slots worked, and until one more did.
    start_seconds: float
    #: The share of the time in which a slot's thread wanted a core and had none.
    waited: float
    join_seconds: float | None = None


class Given(NamedTuple):
    """How many of what: the phases run with each of `slots`, on each of `partitions`."""

    slots: Sequence[int]
    partitions: Sequence[int]
    #: Partitions of the phase with commits: fewer, since each commit costs the broker milliseconds.
    committing: Sequence[int]
    #: Slots and partitions of the largest.
    largest: tuple[int, int]
    #: Members and partitions of the group that is simulated.
    group: tuple[int, int]


def _idle(given: Given) -> Iterator[Measured]:
    for partitions in given.partitions:
        with _installed(partitions) as (broker, folder), Fleet(broker, folder, partitions, _QUIET) as fleet:
            yield from _in_steps("idle", fleet, partitions, given.slots)


def _lookups(given: Given) -> Iterator[Measured]:
    partitions = given.partitions[0]
    with _installed(partitions) as (broker, folder), Fleet(broker, folder, partitions, {**_QUIET, **_LOOKUPS}) as fleet:
        yield from _in_steps("lookups", fleet, partitions, given.slots)


def _heartbeats(given: Given) -> Iterator[Measured]:
    """Those of the slots, then others' too: of as many replicas as cannot run here."""
    partitions, slots = given.partitions[0], given.slots[-1]
    with (
        _installed(partitions) as (broker, folder),
        Fleet(broker, folder, partitions, {**_QUIET, **_HEARTBEATS}) as fleet,
    ):
        took = 0.0
        for one in _in_steps("heartbeats", fleet, partitions, given.slots):
            took = one.start_seconds
            yield one
        with _running(_send_beats, broker, slots):
            yield _measured("heartbeats", fleet, partitions, took)


def _in_steps(what: str, fleet: Fleet, partitions: int, slots: Sequence[int]) -> Iterator[Measured]:
    for number in slots:
        took = fleet.add(number - len(fleet.pids))
        yield _measured(what, fleet, partitions, took)


def _commits(given: Given) -> Iterator[Measured]:
    for partitions in given.committing:
        with _installed(partitions) as (broker, folder), Fleet(broker, folder, partitions, _QUIET) as fleet:
            took = fleet.add(COMMITTING_SLOTS)
            with _running(_produce, broker, partitions):
                wanted = fleet.commits() + BEACONS_A_SECOND * partitions
                wait_until(lambda: fleet.commits() >= wanted, _LOAD_SECONDS_MAX, "the load has begun", every=1.0)  # noqa: B023
                yield _measured("commits", fleet, partitions, took)


def _largest(given: Given) -> Iterator[Measured]:
    slots, partitions = given.largest
    with _installed(partitions) as (broker, folder), Fleet(broker, folder, partitions, _QUIET) as fleet:
        # All at once, two cores would not get them to work.
        steps = [*(number for number in given.slots if number < slots), slots]
        took = sum(fleet.add(number - len(fleet.pids)) for number in steps)
        found = _measured("largest", fleet, partitions, took)
        # Partitions of others move to it.
        yield found._replace(join_seconds=fleet.add(1))


def group(given: Given) -> Settled:
    """The group at its full size, of bare members."""
    count, partitions = given.group
    with _installed(partitions) as (broker, _):
        members = Members(broker, partitions)
        with members.running():
            took = members.add(count)
            time.sleep(CALM_SECONDS)
            cores = cores_of(broker, MEASURED_SECONDS)
            joined = members.add(1)
            return Settled(count, partitions, took, joined, members.remove(), cores)


#: By name, in the order in which they run.
PHASES: Final[Mapping[str, Callable[[Given], Iterator[Measured]]]] = {
    "idle": _idle,
    "heartbeats": _heartbeats,
    "lookups": _lookups,
    "commits": _commits,
    "largest": _largest,
}


def _broker(folder: Path) -> Broker:
    return Broker(folder / "broker", properties=_PATIENT)


@contextmanager
def _installed(partitions: int) -> Iterator[tuple[Broker, Path]]:
    with tempfile.TemporaryDirectory(prefix="scale") as folder, _broker(Path(folder)) as broker:
        of = profile(partitions)
        application = APPLICATIONS["video_views"]({})
        wanted = [
            NewTopic(topic.name, num_partitions=topic.partitions(of), replication_factor=1, config=topic.config(of))
            for topic in {one.name: one for one in (*application.topics, topics.PRESENCE)}.values()
        ]
        # It must outlive its answers.
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for made in admin.create_topics(wanted, operation_timeout=120).values():
            made.result()
        yield broker, Path(folder)


@contextmanager
def _running(load: Callable[[Broker, int, threading.Event], None], broker: Broker, number: int) -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=load, args=(broker, number, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _measured(what: str, fleet: Fleet, partitions: int, took: float) -> Measured:
    time.sleep(CALM_SECONDS)
    used = fleet.used(MEASURED_SECONDS)
    if not fleet.is_whole():
        raise RuntimeError(f"{what}: not every partition is worked")
    slots = len(fleet.pids)
    point = Point(
        slots,
        partitions,
        used.heartbeats * slots,
        slots if what == "lookups" else 0,
        used.commits,
        used.broker,
        used.slots,
    )
    return Measured(what, point, used.heartbeats, fleet.connections(), fleet.pss_mib(), took, used.waited)


def _send_beats(broker: Broker, slots: int, over: threading.Event) -> None:
    """Heartbeats of replicas that are not there, `OTHERS_BEATS_A_SECOND`, with the partitions that such a replica has."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    partitions = list(range(8))
    beat = Presence(
        schema_version=SCHEMA_VERSION,
        application="video_views",
        slot="others/0",
        replica=1,
        incarnation="others",
        role="standby",
        url="http://127.0.0.1:9999",
        partitions=partitions,
        lags=dict.fromkeys(partitions, 0),
        successor=None,
    )
    began, sent = time.monotonic(), 0
    while not over.is_set():
        value = codec.PRESENCE.encode(msgspec.structs.replace(beat, slot=f"others/{sent % 150 + slots}"))
        producer.produce(topics.PRESENCE.name, value, b"others", 0)
        producer.poll(0)
        sent += 1
        over.wait(max(0.0, began + sent / OTHERS_BEATS_A_SECOND - time.monotonic()))
    producer.flush(30)


def _produce(broker: Broker, partitions: int, over: threading.Event) -> None:
    """A view in each partition, each of whose beacons makes it commit."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    keys: dict[int, str] = {}
    number = 0
    while len(keys) < partitions:
        keys.setdefault(partition_of.__wrapped__(view_key("acme", str(number)), partitions), str(number))
        number += 1
    began, seq = time.monotonic(), 0
    while not over.is_set():
        seq += 1
        for partition, view_id in keys.items():
            producer.produce(topics.BEACONS.name, beacon(view_id, seq), view_key("acme", view_id), partition)
        producer.poll(0)
        over.wait(max(0.0, began + seq / BEACONS_A_SECOND - time.monotonic()))
    producer.flush(30)
