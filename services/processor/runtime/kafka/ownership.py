"""Ownership: which member of the group has which partition, as the group coordinator reports it.

It routes queries, and it prevents stale answers. After the rows were read, the coordinator is asked. The answer is sent only if
it names the member that read them. So a slot that was paused, evicted or replaced gives no stale answer. This does not depend on
the length of the pause or on clocks.
"""

import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from services.processor.engine.routing import Owner, Owners
from services.rim.kafka.connection import client_config
from shared.settings import Settings

log = structlog.get_logger(__name__)

#: How often the group is asked when no request waits, and the least time between two queries when one does.
ASK_SECONDS: Final = 0.5
PACE_SECONDS: Final = 0.02
ANSWER_SECONDS_MAX: Final = 2.0
#: The state of a group that is not about to rebalance.
SETTLED: Final = "Stable"


def client_id(application: str, slot: str, url: str | None) -> str:
    """A member's client id: it holds the slot's lookup address, for all that describe the group."""
    return f"{application}/{slot}" if url is None else f"{application}/{slot}@{url}"


def owner_of(member_client_id: str) -> Owner:
    """The owner in a client id that `client_id` made."""
    member, _, url = member_client_id.partition("@")
    return Owner(member.partition("/")[2], url if url.startswith(("http://", "https://")) else None)


def boot_seconds() -> float:
    """Seconds that run on while the machine is suspended too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True)
class Described:
    """The group's reply to a query sent at `asked_at` (`boot_seconds`). A group that rebalances names no owner."""

    asked_at: float = 0.0
    owners: Mapping[int, Owner] = field(default_factory=dict)
    member_ids: Mapping[int, str] = field(default_factory=dict)
    is_settled: bool = False

    def confirms(self, partition: int, member_id: str) -> bool:
        """Whether the partition was this member's when the group was asked."""
        return bool(member_id) and self.member_ids.get(partition) == member_id


class Member(Protocol):
    """What of a member is used of the client's `GroupMember`, whose own types say None."""

    id: str
    client_id: str
    assignment: bytes


class Group(Protocol):
    """What of a group is used of the client's `GroupMetadata`."""

    state: str
    error: KafkaError | None

    @property
    def members(self) -> Sequence[Member]: ...


def described(groups: Sequence[Group], topic: str, asked_at: float) -> Described:
    """The owners of `topic`'s partitions in a group's descriptions: one, or as many as brokers coordinate it just now."""
    if len(groups) != 1 or groups[0].error is not None:
        # None, or one is a coordinator no more and does not know it yet.
        return Described(asked_at)
    owners: dict[int, Owner] = {}
    member_ids: dict[int, str] = {}
    for member in groups[0].members:
        for partition in assigned(member.assignment, topic):
            owners[partition] = owner_of(member.client_id)
            member_ids[partition] = member.id
    return Described(asked_at, owners, member_ids, groups[0].state == SETTLED)


def assigned(assignment: bytes, topic: str) -> Iterator[int]:
    """The partitions of `topic` in a member's assignment, in the format of the group's protocol.

    https://github.com/apache/kafka/blob/trunk/clients/src/main/resources/common/message/ConsumerProtocolAssignment.json:
    version (2 bytes); topics (4-byte count), each a name (2-byte length) and partitions (4-byte count, 4 bytes each).
    """
    if not assignment:
        return
    _, topics = struct.unpack_from(">hi", assignment)
    at = 6
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", assignment, at)
        name = assignment[at + 2 : at + 2 + length].decode()
        (count,) = struct.unpack_from(">i", assignment, at + 2 + length)
        at += 6 + length
        if name == topic:
            yield from struct.unpack_from(f">{count}i", assignment, at)
        at += 4 * count


class Ownership:
    """Asks the group from a thread of its own: twice a second, and soon when a request waits.

    `url_of` knows better where a slot's lookups listen: for the group, a replica that takes a slot over keeps the client id of the
    replica before it.
    """

    def __init__(
        self, settings: Settings, *, group: str, topic: str, first: Owners, url_of: Callable[[str], str | None]
    ) -> None:
        self._admin = AdminClient(client_config(settings, f"{group}.ownership"))
        self._group = group
        self._topic = topic
        self._url_of = url_of
        self._on_news: Callable[[], None] = lambda: None
        self._wanted = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="ownership", daemon=True)
        self.owners = first
        self.newest = Described()

    def start(self, on_news: Callable[[], None]) -> None:
        """Begins to ask; `on_news` is called from the thread after every question, answered or not."""
        self._on_news = on_news
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; waits for the question it may be asking."""
        self._is_stopping = True
        self._wanted.set()
        self._thread.join(2 * ANSWER_SECONDS_MAX)

    def want(self) -> None:
        """Somebody waits for newer news: ask soon."""
        self._wanted.set()

    def _run(self) -> None:
        while not self._is_stopping:
            self._wanted.clear()
            self._ask()
            self._on_news()
            time.sleep(PACE_SECONDS)
            self._wanted.wait(ASK_SECONDS)

    def _ask(self) -> None:
        asked_at = boot_seconds()
        try:
            # Not `describe_consumer_groups`: while the coordinator is unreachable, librdkafka 2.16 aborts the process with a failed
            # assertion (in `rd_kafka_enq_once_del_source_return`).
            groups = cast(list[Group], self._admin.list_groups(self._group, timeout=ANSWER_SECONDS_MAX))
            reply = described(groups, self._topic, asked_at)
        except KafkaException as exception:
            log.debug("owners_unknown", code=exception.args[0].name())
            return
        owners = {
            partition: Owner(owner.slot, self._url_of(owner.slot) or owner.url)
            for partition, owner in reply.owners.items()
        }
        self.owners = self.owners.renewed(owners, is_settled=reply.is_settled)
        self.newest = reply
