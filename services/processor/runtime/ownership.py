"""Ownership: which member of the group has which partition, by the coordinator's own account.

It routes questions, and it is what makes answers safe: an answer is given only when the coordinator, asked after the rows were
read, names the very member that read them. So a slot that was paused, evicted or replaced cannot tell old news, however short
the pause and whatever the clocks.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._group import ConsumerGroupDescription

from services.processor.engine.routing import Owner, Owners
from services.rim.kafka import client_config
from shared.settings import Settings

log = structlog.get_logger(__name__)

#: How often the group is asked when nobody waits, and the least time between two questions when somebody does.
ASK_SECONDS: Final = 0.5
PACE_SECONDS: Final = 0.02
ANSWER_SECONDS_MAX: Final = 2.0


def client_id(application: str, slot: str, url: str | None) -> str:
    """A member's client id: it carries where the slot's lookups listen to everyone who asks the group."""
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
    """What the group said to a question asked at `asked_at` (`boot_seconds`). A group that rebalances names nobody."""

    asked_at: float = 0.0
    owners: Mapping[int, Owner] = field(default_factory=dict)
    member_ids: Mapping[int, str] = field(default_factory=dict)
    is_settled: bool = False

    def confirms(self, partition: int, member_id: str) -> bool:
        """Whether the partition was this member's when the group was asked."""
        return bool(member_id) and self.member_ids.get(partition) == member_id


def described(group: ConsumerGroupDescription, topic: str, asked_at: float) -> Described:
    """The owners of `topic`'s partitions in a group's description."""
    owners: dict[int, Owner] = {}
    member_ids: dict[int, str] = {}
    for member in group.members:
        for at in member.assignment.topic_partitions if member.assignment else ():
            if at.topic == topic:
                owners[at.partition] = owner_of(member.client_id)
                member_ids[at.partition] = member.member_id
    return Described(asked_at, owners, member_ids, group.state == ConsumerGroupState.STABLE)


class Ownership:
    """Asks the group from a thread of its own: twice a second, and soon when somebody waits.

    `url_of` knows better where a slot's lookups listen: a replica that takes a slot's id over inherits, in the group's account,
    the client id of the one before it.
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
            answers = self._admin.describe_consumer_groups([self._group], request_timeout=ANSWER_SECONDS_MAX)
            told = described(answers[self._group].result(), self._topic, asked_at)
        except KafkaException as exception:
            log.debug("owners_unknown", code=exception.args[0].name())
            return
        owners = {
            partition: Owner(owner.slot, self._url_of(owner.slot) or owner.url)
            for partition, owner in told.owners.items()
        }
        self.owners = self.owners.renewed(owners, is_settled=told.is_settled)
        self.newest = told
