"""`python -m tests.chaos.alerts`: incidents while slots, notifications, Postgres and the broker die; each change is notified once.

Customers have incidents whose begin and end are known. Exits 1 and keeps its folder when a change of one is missing or doubled, in
topic `alert_events` or at a receiver, or when messages of one come out of order.
"""

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
from aiosmtpd.controller import Controller
from confluent_kafka import Producer

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.store import schema as accounts_schema
from services.accounts.store.audit import Actor
from services.alerts.core.incidents import QUIET_MS
from services.alerts.core.rules import RuleBody
from services.alerts.service import Alerting
from services.alerts.store import schema
from services.rim.database.pool import Postgres as Pool
from shared import codec
from shared.partitioning import partition_of
from shared.schemas.live import BUCKET_MS
from shared.topics import ALERT_EVENTS, ALERT_RULES, ALERTS_CHANGELOG, LIVE, PRESENCE, RECEIVED, REJECTED
from tests.chaos.alerts_verdict import Arrival, Expected, wrong_events, wrong_messages
from tests.chaos.command import carry_out_rounds
from tests.integration.alerts.notifying import notifications
from tests.integration.parts.brokers import broker_with_topics
from tests.integration.parts.feed import committed
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import Slot, wait_until
from tests.unit.alerts.live import T0 as MONDAY
from tests.unit.alerts.live import live
from tests.unit.webhooks.receiver import SECRET, Receiver, receiving

TOPICS: Final = (ALERT_RULES, LIVE, RECEIVED, ALERT_EVENTS, ALERTS_CHANGELOG, PRESENCE, REJECTED)
#: In the past: the clock of a slot is the present, and the first bucket waits by it.
T0: Final = MONDAY - 14 * 86_400_000
SESSION_MS: Final = 3_000
SETTLE_SECONDS_MAX: Final = 240.0
SECONDS_MAX: Final = 60.0
#: Buckets of one round: an incident begins and ends somewhere in it, and three quiet minutes follow.
ROUND: Final = 60
FAULTS: Final = (
    "slot killed",
    "notifications killed",
    "Postgres killed",
    "slot stopped past its session",
    "broker killed",
)
#: A run of so many rounds is a result that docs/results.md shows.
RESULT_ROUNDS: Final = 4


@dataclass(frozen=True)
class Options:
    """One run: in each round every customer has an incident, and faults are injected."""

    rounds: int
    seed: int = 1
    customers: int = 12
    slots: int = 2
    #: Services that send at the same time.
    notifications: int = 2
    #: Faults of a round.
    faults: int = 5


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    faults: Counter[str]
    incidents: int
    changes: int
    messages: int
    copies: int
    wrong: list[str]

    def table(self) -> str:
        """The result in words."""
        lines = [
            f"incidents {self.incidents:,}, changes {self.changes:,}",
            f"messages {self.messages:,}, and {self.copies} copies under a key that the receiver knew",
        ]
        lines += [f"{number:4} times: {fault}" for fault, number in sorted(self.faults.items())]
        lines += [f"WRONG: {one}" for one in self.wrong] or [
            "0 changes missing or doubled, 0 messages missing, doubled or out of order"
        ]
        return "\n".join(lines)


class Mailbox:
    """An SMTP server's handler, which keeps what came."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    async def handle_DATA(  # noqa: N802 - as the library calls it
        self, _server: object, _session: object, envelope: Any
    ) -> str:
        self.got.append(envelope)
        return "250 OK"


class Scene:
    """Everything at work."""

    def __init__(self, broker: Broker, postgres: Postgres, smtp_port: int, folder: Path, options: Options) -> None:
        self.broker = broker
        self.postgres = postgres
        self.chance = random.Random(options.seed)
        self.customers = [f"customer-{number}" for number in range(options.customers)]
        self.faults = Counter[str]()
        self.slots = [
            Slot(broker.bootstrap, folder, number, PROCESSOR_APPLICATION="alerts", PROCESSOR_SESSION_MS=str(SESSION_MS))
            for number in range(options.slots)
        ]
        self._folders = [folder / f"notifications-{number}" for number in range(options.notifications)]
        for one in self._folders:
            one.mkdir()
        self._notifications = partial(notifications, broker.bootstrap, postgres.dsn, smtp_port)
        self.notifications = [self._notifications(one) for one in self._folders]

    def start(self) -> None:
        """Starts what does not run, as an orchestrator does."""
        for slot in self.slots:
            if not slot.is_running:
                slot.start()
        for number, one in enumerate(self.notifications):
            if not one.is_running:
                self.notifications[number] = self._notifications(self._folders[number])
                self.notifications[number].start()

    def inject(self, fault: str) -> None:
        """One fault; afterwards everything is started again."""
        self.faults[fault] += 1
        slot = self.chance.choice(self.slots)
        match fault:
            case "slot killed":
                slot.kill()
            case "slot stopped past its session":
                slot.pause()
                time.sleep(2 * SESSION_MS / 1_000)
                slot.wake()
            case "notifications killed":
                self.chance.choice(self.notifications).kill()
            case "Postgres killed":
                self.postgres.kill()
                self.postgres.start()
            case _:
                self.broker.kill()
                self.broker.start()
        self.start()

    def end(self) -> None:
        """Ends the processes."""
        for slot in self.slots:
            slot.end()
        for one in self.notifications:
            one.kill()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What Postgres answers."""
        with psycopg.connect(self.postgres.dsn, autocommit=True) as connection:
            return connection.execute(statement).fetchall()  # type: ignore[arg-type]


def run(options: Options, folder: Path) -> Result:
    """Runs, waits until all is settled, and judges."""
    box = Mailbox()
    mail = Controller(box, hostname="127.0.0.1", port=free_port())
    with (
        broker_with_topics(folder / "broker", TOPICS) as broker,
        started(Postgres(folder / "postgres")) as postgres,
        receiving(lambda _id, before: 503 if before < 1 else 204) as hook,
    ):
        mail.start()
        scene = Scene(broker, postgres, mail.port, folder, options)
        asyncio.run(_prepare(postgres.dsn, scene.customers, hook.url))
        try:
            scene.start()
            wait_until(lambda: not scene.rows(_UNPUBLISHED), "the rules are published", SETTLE_SECONDS_MAX)
            wait_until(lambda: all(one.is_ready() for one in scene.slots), "the slots work", SETTLE_SECONDS_MAX)
            expected: list[Expected] = []
            for number in range(options.rounds):
                expected += _round(scene, options, number)
            _settle(scene, 2 * len(expected))
            events = [codec.ALERT_EVENT.decode(one.value() or b"") for one in committed(broker.bootstrap, ALERT_EVENTS)]
        finally:
            scene.end()
            mail.stop()
    arrivals = {"hook": _posted(hook), "mail": _mailed(box)}
    wrong = wrong_events(expected, events) + wrong_messages(events, arrivals)
    every = [one.key for got in arrivals.values() for one in got]
    return Result(scene.faults, len(expected), len(events), len(set(every)), len(every) - len(set(every)), wrong)


_UNPUBLISHED: Final = "SELECT 1 FROM alerts.environments WHERE version > published"


@contextmanager
def started(postgres: Postgres) -> Iterator[Postgres]:
    """A server of its own: it is killed."""
    try:
        postgres.start()
        accounts_schema.migrate(postgres.dsn)
        schema.migrate(postgres.dsn)
        yield postgres
    finally:
        postgres.remove()


async def _prepare(dsn: str, customers: list[str], hook: str) -> None:
    """A threshold for each customer, which notifies a webhook and an address."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(
            "INSERT INTO accounts.organisations (name, owns_rest) VALUES ('Acme', true) RETURNING id::text"
        ).fetchone()
    assert row is not None
    actor = Actor("person", "p", "ada@acme", None, row[0])
    pool = Pool(dsn, service="test", connections_max=2, seconds_max=10, writes=True)
    await pool.open()
    try:
        alerting = Alerting(pool)
        webhook = await alerting.add_receiver(
            actor, name="hook", kind="webhook", target={"url": hook, "secret": SECRET}, template=None
        )
        mail = await alerting.add_receiver(
            actor, name="mail", kind="email", target={"to": ["a@x.example"]}, template="$incident $change"
        )
        for customer in customers:
            body = RuleBody(
                customer=customer, name="High", metric="rebuffering", condition="threshold", threshold=0.05,
                receivers=[webhook, mail],
            )  # fmt: skip
            await alerting.add_rule(EVERYTHING, body, actor)
    finally:
        await pool.close()


def _round(scene: Scene, options: Options, number: int) -> list[Expected]:
    """Feeds the buckets of a round, with faults between them; the incidents that must come of it."""
    customers, chance = scene.customers, scene.chance
    first = number * ROUND
    bad = {one: range(begin := chance.randint(2, 8), begin + chance.randint(2, 10)) for one in customers}
    producer = Producer({"bootstrap.servers": scene.broker.bootstrap, "acks": "all", "enable.idempotence": True})
    several = list(FAULTS) if options.faults >= len(FAULTS) else []
    several += [chance.choice(FAULTS) for _ in range(options.faults - len(several))]
    chance.shuffle(several)
    at = sorted(chance.sample(range(1, ROUND), len(several)))
    for bucket in range(ROUND):
        if bucket in at:
            assert producer.flush(SECONDS_MAX) == 0
            fault = several[at.index(bucket)]
            scene.inject(fault)
        for customer in customers:
            hits = 40 if bucket in bad[customer] else 4
            for partition in range(2):
                gauge = live(
                    T0 + (first + bucket) * BUCKET_MS, partition, customer, viewers_now=200, rebuffering_now=hits // 2
                )
                key = customer.encode()
                producer.produce(LIVE.name, codec.LIVE.encode(gauge), key, partition_of(key, PARTITIONS))
    assert producer.flush(SECONDS_MAX) == 0

    def end_of(bucket: int) -> int:
        return T0 + (first + bucket + 1) * BUCKET_MS

    return [Expected(one, end_of(bad[one].start), end_of(bad[one].stop - 1) + QUIET_MS) for one in customers]


def _settle(scene: Scene, changes: int) -> None:
    """Waits until all changes have landed, and no message waits."""
    _until(scene, lambda: len(scene.rows("SELECT 1 FROM alerts.changes")) >= changes, "the incidents have closed")
    waiting = "SELECT 1 FROM alerts.deliveries WHERE state = 'waiting'"
    _until(scene, lambda: not scene.rows(waiting), "all messages are delivered")
    states = {one[0] for one in scene.rows("SELECT DISTINCT state FROM alerts.deliveries")}
    assert states == {"delivered"}, states


def _until(scene: Scene, condition: Callable[[], bool], what: str) -> None:
    def holds() -> bool:
        scene.start()
        return condition()

    wait_until(holds, what, SETTLE_SECONDS_MAX)


def _posted(hook: Receiver) -> list[Arrival]:
    assert all(one.is_signed for one in hook.got)
    return [Arrival(one.id, one.body["data"]["incident_id"], one.body["data"]["revision"]) for one in hook.taken()]


def _mailed(box: Mailbox) -> list[Arrival]:
    found = []
    for envelope in box.got:
        message = message_from_bytes(envelope.content)
        incident_id, change = str(message.get_payload()).split()
        # In this run an incident opens and closes, and is not updated.
        found.append(Arrival(message["Message-ID"], incident_id, {"opened": 1, "closed": 2}[change]))
    return found


def main() -> int:
    """Runs, prints, and says where the logs are when something is wrong."""
    return carry_out_rounds(
        lambda rounds, seed, folder: run(Options(rounds, seed), folder),
        module="alerts",
        about=__doc__,
        rounds=RESULT_ROUNDS,
        title="Alerts: each change notified once through kills",
        checked="every change of every incident is in the topic once, and at each receiver under one key, in order",
    )


if __name__ == "__main__":
    sys.exit(main())
