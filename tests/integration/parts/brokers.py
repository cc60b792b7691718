"""Brokers that have their topics from the first moment.

Each partition costs a broker CPU time when it starts and while it runs, so a test says which topics it needs. A start costs several
CPU seconds, and what a broker has compiled is lost with it. So a broker that a test gives back rests, and is the next one's when
nothing of the former is left in it.
"""

import atexit
import functools
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from deploy.local.broker import Broker, new_cluster_id
from deploy.local.process import DeadlinePassed, ProcessDied, wait_until
from deploy.topics import create_topics
from services.processor.catalogue import APPLICATIONS
from services.rim.kafka.connection import TopicsWrong
from shared import topics
from shared.topics import ProfileName, Topic
from tests.integration.parts.installed import PROFILE, kafka

#: What a collector verifies at its start.
OF_COLLECTOR: Final = (
    *(topics.BEACONS, topics.SPANS, topics.API_CALLS, topics.RECORDINGS),
    *(topics.RECEIVED, topics.REJECTED),
)


def topics_of(application: str) -> tuple[Topic, ...]:
    """What a slot of the application verifies at its start."""
    return (*APPLICATIONS[application]({}).topics, topics.PRESENCE)


OF_VIEWS: Final = topics_of("video_views")
#: Everybody may do what no rule forbids: a test may forbid something for a while.
_AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
#: The settings of a broker that differ from others'.
Kind = frozenset[tuple[str, str]]
#: So many rest of a kind: members of groups that were killed need seconds to count as dead, and another broker is taken meanwhile.
RESTING_MAX: Final = 2
_ANSWER_SECONDS_MAX: Final = 30.0
#: A broker of a test mostly waits, and each of its threads wakes three times a second to see whether there is something to do.
_FEW_THREADS: Final = {"num.io.threads": "2", "num.network.threads": "1", "group.coordinator.threads": "1"}
_WAKE_SECONDS_MAX: Final = 90.0
_POLL_SECONDS: Final = 0.1
_GONE_SECONDS_MAX: Final = 60.0
_resting: dict[Kind, list[Broker]] = {}


@contextmanager
def broker_with_topics(
    folder: Path,
    wanted: Iterable[Topic] = topics.ALL,
    *,
    profile: ProfileName = PROFILE,
    properties: Mapping[str, str] | None = None,
) -> Iterator[Broker]:
    """A running broker with these topics and no others, without groups; at the end it rests. `properties` are further settings.

    A new one lies in `folder`, and its data are a copy of data that were formatted once in a run. All such brokers are one cluster
    to their clients, so a test of two clusters has its second from `another_cluster`.
    """
    kind = frozenset((properties or {}).items())
    broker = _rested(kind) or _started(folder, properties)
    try:
        with_topics(broker, wanted, profile)
        yield broker
    finally:
        _rest(broker, kind)


def with_topics(broker: Broker, wanted: Iterable[Topic], profile: ProfileName = PROFILE) -> None:
    """Creates topics, as soon as the broker may have some.

    One that hung, or had no CPU for its session, is fenced by its controller until its next heartbeat.
    """
    declared = list(wanted)
    deadline = time.monotonic() + _WAKE_SECONDS_MAX
    while declared:
        try:
            create_topics(kafka(broker.bootstrap, profile), declared)
        except TopicsWrong:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_POLL_SECONDS)
        else:
            return


def without_topics(broker: Broker) -> None:
    """Deletes all topics, and waits until they are gone."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    if names := _topics(admin):
        for answer in admin.delete_topics(names).values():
            answer.result()
    wait_until(lambda: not _topics(admin), _GONE_SECONDS_MAX, "the topics are gone")


def at_work(broker: Broker) -> Broker:
    """The broker, which a test may have left stopped or killed, at work again: in its cluster, too, which it left when it hung."""
    if broker.is_running:
        broker.child.signal(signal.SIGCONT)
        broker.wait_ready()
    else:
        broker.start()
    return broker


def another_cluster(folder: Path, port: int | None = None) -> Broker:
    """A broker, not yet started, that is another cluster to its clients than those of `broker_with_topics`."""
    format_data(folder)
    known = folder / "data" / "meta.properties"
    known.write_text(re.sub(r"(?m)^cluster\.id=.*$", f"cluster.id={new_cluster_id()}", known.read_text()))
    return Broker(folder, port=port)


def format_data(folder: Path) -> None:
    """Gives a broker in `folder` a copy of data that were formatted once in a run: that takes a JVM of its own."""
    shutil.copytree(_formatted(), folder / "data")


def _started(folder: Path, properties: Mapping[str, str] | None) -> Broker:
    format_data(folder)
    broker = Broker(folder, properties={**_AUTHORIZER, **_FEW_THREADS, **(properties or {})})
    broker.start()
    return broker


def _rested(kind: Kind) -> Broker | None:
    """The broker that has rested the longest of those that have nothing of former tests; None when there is none."""
    resting = _resting[kind] = [broker for broker in _resting.get(kind, []) if broker.is_running]
    found = next((broker for broker in resting if _is_as_new(broker)), None)
    if found is not None:
        resting.remove(found)
    return found


def _rest(broker: Broker, kind: Kind) -> None:
    """Keeps a broker for a later test, hung: one that is idle costs some percent of a core.

    One that a test has left stopped, or that cannot be emptied, is killed.
    """
    resting = _resting.setdefault(kind, [])
    try:
        if len(resting) < RESTING_MAX and broker.is_running:
            without_topics(broker)
            broker.child.signal(signal.SIGSTOP)
            resting.append(broker)
            return
    except (KafkaException, DeadlinePassed):
        # A test has hung it, or forbidden this: a new one costs less than to find out.
        pass
    broker.kill()


def _is_as_new(broker: Broker) -> bool:
    """Wakes a broker: whether it has no topics and no groups. It hangs again while a member of a group counts as alive."""
    broker.child.signal(signal.SIGCONT)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    deadline = time.monotonic() + _WAKE_SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            # It left its cluster when it hung, and has its groups again only some time after it is back.
            broker.wait_ready(_WAKE_SECONDS_MAX)
            groups = admin.list_consumer_groups(request_timeout=_ANSWER_SECONDS_MAX).result().valid
            if not groups:
                # A client of a former test may have made some.
                without_topics(broker)
                return True
            for answer in admin.delete_consumer_groups([group.group_id for group in groups]).values():
                answer.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.NON_EMPTY_GROUP:
                break
        except (DeadlinePassed, ProcessDied):
            break
        time.sleep(_POLL_SECONDS)
    broker.child.signal(signal.SIGSTOP)
    return False


def _topics(admin: AdminClient) -> list[str]:
    return [name for name in admin.list_topics(timeout=_ANSWER_SECONDS_MAX).topics if not name.startswith("__")]


@atexit.register
def _end_all() -> None:
    for resting in _resting.values():
        while resting:
            resting.pop().kill()


@functools.cache
def _formatted() -> Path:
    """The data of a broker that was never started."""
    folder = Path(tempfile.mkdtemp(prefix="playhead-broker-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Broker(folder).format()
    return folder / "data"
