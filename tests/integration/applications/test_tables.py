"""The application of CONTRIBUTING that joins two inputs and looks up a global table, on a broker, through kills of its slots."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from deploy.local.broker import Broker
from deploy.topics import create_topics
from shared import codec, topics
from shared.partitioning import partition_of
from shared.schemas.user import User
from tests import guide
from tests.integration.parts.feed import committed
from tests.integration.parts.installed import PARTITIONS, kafka
from tests.integration.parts.slots import Slot, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

APPLICATION: Final = guide.application("reports")
REPORTS: Final = APPLICATION.inputs[1]
REPORTED: Final = APPLICATION.outputs[0]
USERS: Final = 200
#: A slot that stays away is missed soon, and one without CPU for a few seconds is not.
QUICK: Final = {"PROCESSOR_SESSION_MS": "6000"}


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[topics.Topic]:
    return APPLICATION.topics


class Scene:
    """One broker, the slots, and what was sent and reported."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.bootstrap = broker.bootstrap
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all"})
        self.slots = [
            Slot(self.bootstrap, folder, number, program=("tests.integration.applications.guide_slot",), **QUICK)
            for number in range(2)
        ]
        self.sent: list[str] = []

    def send(self, topic: topics.Topic, key: str, value: bytes | None) -> None:
        self._producer.produce(topic.name, value, key.encode(), partition_of(key.encode(), PARTITIONS))

    def flush(self) -> None:
        assert self._producer.flush(60) == 0

    def name(self, number: int, name: str) -> None:
        """Makes a user, or gives it another name."""
        user = User(
            id=f"u{number}", email="a@example.com", name=name, attributes={}, version=1, created_ms=1, updated_ms=1
        )
        self.send(topics.USERS, user.id, codec.USER.encode(user))

    def report(self, number: int, view: str) -> str:
        """A user reports a view; the text of the report, which no other has."""
        text = f"report-{len(self.sent)}"
        self.sent.append(text)
        self.send(REPORTS, view, f"u{number} {text}".encode())
        return text

    def reported(self) -> dict[str, str]:
        """By text, what came out. Asserts that no report came out twice."""
        found = [(record.value() or b"").decode().split() for record in committed(self.bootstrap, REPORTED)]
        texts = Counter(words[1] for words in found)
        assert max(texts.values(), default=1) == 1, texts.most_common(3)
        return {words[1]: words[0] + " ".join(words[2:]) for words in found}

    def rejected(self) -> list[tuple[object, object]]:
        """Keys and values of what was rejected."""
        return [(record.key(), record.value()) for record in committed(self.bootstrap, topics.REJECTED)]

    def all_reported(self) -> dict[str, str]:
        wait_until(lambda: set(self.sent) <= self.reported().keys(), "every report is out")
        return self.reported()


@pytest.fixture
def scene(own_broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(own_broker, tmp_path)
    yield made
    for slot in made.slots:
        slot.end()


def test_every_slot_has_the_whole_table_through_kills_and_while_its_topic_is_away(scene: Scene) -> None:
    for number in range(USERS):
        scene.name(number, f"name-{number}")
    scene.send(topics.USERS, "u0", b"no user")
    for view in range(PARTITIONS * 4):
        scene.send(topics.BEACONS, f"view-{view}", b"stalled")
    scene.flush()
    for slot in scene.slots:
        slot.start()
    wanted = {}
    # Users and views of all partitions meet, while slots are killed.
    for number in range(600):
        text = scene.report(number % USERS, f"view-{number % (PARTITIONS * 4)}")
        wanted[text] = f"name-{number % USERS}:stalled" if number % USERS else "somebody:stalled"
        if number in {150, 300, 450}:
            scene.flush()
            half = number // 2
            wait_until(lambda half=half: len(scene.reported()) > half, "half of it is out")
            killed = scene.slots[number // 150 % 2]
            killed.kill()
            killed.start()
    scene.flush()
    assert scene.all_reported() == wanted
    wait_until(lambda: bool(scene.rejected()), "what is no user is rejected")
    assert scene.rejected() == [(b"u0", b"no user")], "once, whichever slots have read it"

    # What the table had when a partition was taken, its owner has: no report comes out with less.
    for slot in scene.slots:
        slot.kill()
    for number in range(USERS):
        scene.name(number, "new")
    scene.flush()
    since = [scene.report(number, f"view-{number % (PARTITIONS * 4)}") for number in range(USERS)]
    scene.flush()
    for slot in scene.slots:
        slot.start()
    found = scene.all_reported()
    assert {found[text] for text in since} == {"new:stalled"}

    _takes_nothing_while_the_topic_is_away(scene)


def _takes_nothing_while_the_topic_is_away(scene: Scene) -> None:
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    scene.slots[1].kill()
    admin.delete_topics([topics.USERS.name])[topics.USERS.name].result()
    scene.slots[0].kill()
    scene.slots[0].start()
    waits = scene.report(1, "view-1")
    scene.flush()
    wait_until(lambda: bool(scene.slots[0].events("table_waits")), "the slot says what it waits for")
    assert waits not in scene.reported()
    create_topics(kafka(scene.bootstrap), [topics.USERS])
    assert scene.all_reported()[waits] == "somebody:stalled"

    # Created again under a slot at work, with more records than it had: nothing of the former topic stays.
    scene.name(1, "second")
    scene.name(2, "second")
    scene.flush()
    _until_reported_by(scene, 2, "second")
    scene.slots[0].pause()
    admin.delete_topics([topics.USERS.name])[topics.USERS.name].result()
    wait_until(lambda: topics.USERS.name not in admin.list_topics(timeout=10).topics, "the topic is gone")
    create_topics(kafka(scene.bootstrap), [topics.USERS])
    for number in range(USERS):
        if number != 2:
            scene.name(number, "third")
    scene.flush()
    scene.slots[0].wake()
    _until_reported_by(scene, 1, "third")
    _until_reported_by(scene, 2, "somebody")
    assert scene.slots[0].terminate() == 0


def _until_reported_by(scene: Scene, number: int, name: str) -> None:
    """Reports until the table names the user so."""

    def is_named() -> bool:
        text = scene.report(number, "view-1")
        scene.flush()
        return scene.all_reported()[text].startswith(f"{name}:")

    deadline = time.monotonic() + 60
    while not is_named():
        assert time.monotonic() < deadline, f"user {number} is not {name}"
