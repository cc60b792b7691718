"""Topic `live` by minute in Postgres is a recount of the topic, wherever the process ends."""

import asyncio
import random
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from deploy.local.broker import Broker
from deploy.local.postgres import Postgres
from deploy.local.process import wait_until
from services.accounts.core.customer_scope import EVERYTHING
from services.dashboard.live.landed.past import AskedPast, assembled, checked
from services.dashboard.live.landed.past_routes import PostgresPast
from services.finalizer.serving.database import Serving
from services.rim.database import pool
from services.rim.process.crash_points import CrashPoints
from services.serving.__main__ import topic_ids
from services.serving.database import Superseded
from services.serving.live.database import EXPIRE_PAIRS, LiveDatabase, LiveMove, NotOurs
from services.serving.live.landing import TOPICS, LiveLanding
from services.serving.live.minutes import Counting, Minutes, Waiting
from services.serving.settings import ServingSettings
from shared import topics
from shared.codec import LIVE
from shared.schemas.live import BUCKET_MS, Live, LiveSlice
from shared.schemas.live_minute import (
    FIELDS,
    GATHERED,
    MINUTE_DECODER,
    MINUTE_MS,
    STEPS_DECODER,
    WHOLE,
    LiveMinute,
    LiveSteps,
    minute_of,
)
from tests.integration.finalizer.finalizing import RawRecord, Topic
from tests.integration.parts.installed import variables
from tests.integration.serving.test_serving import Service

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SECONDS_MAX = 240.0
PARTITIONS = 3
HOUR_MS = 60 * MINUTE_MS
#: Long over, and within what is kept.
FIRST_MS = (time.time_ns() // 1_000_000 - 3 * HOUR_MS) // MINUTE_MS * MINUTE_MS


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[topics.Topic]:
    return (topics.VIEWS, topics.LIVE, topics.RECEIVED, topics.REJECTED)


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    made = postgres.create_database(f"live_{uuid4().hex}")
    with closing(Serving(made, away_seconds_max=20, stop=threading.Event())) as serving:
        serving.open()
        serving.keep_views(0)
    return made


class Feed:
    """Live records of few customers, in the order of each partition's clock."""

    def __init__(self, bootstrap: str) -> None:
        self._topic = Topic(bootstrap, f"live-{uuid4().hex}")
        self._chance = random.Random(3)
        self._bucket = dict.fromkeys(range(PARTITIONS), FIRST_MS // BUCKET_MS)
        self.rejected = 0
        self.sent: dict[int, list[Live]] = {number: [] for number in range(PARTITIONS)}

    def send(self, count: int, *, commit: bool = True) -> None:
        records = []
        for _ in range(count):
            partition = self._chance.randrange(PARTITIONS)
            self._bucket[partition] += self._chance.choice([1, 1, 1, 2, 5])
            live = self._record(partition)
            records.append(RawRecord(topics.LIVE.name, partition, b"key", LIVE.encode(live)))
            if commit:
                self.sent[partition].append(live)
        refusal = RawRecord(topics.REJECTED.name, 0, b"acme:v", b"x", (("reason", b"invalid"),))
        self._topic.send_raw([*records, refusal], commit=commit)
        self.rejected += commit

    def truth(self) -> Minutes:
        counting, found = Counting(), Minutes()
        for records in self.sent.values():
            counting.count(
                [Waiting(at, one.bucket_ms, LIVE.encode(one)) for at, one in enumerate(records)],
                found,
            )
        return found

    def _record(self, partition: int) -> Live:
        chance = self._chance
        figures = {field: chance.randrange(9) for field in FIELDS}
        return Live(
            schema_version=2,
            partition=partition,
            customer_id=chance.choice(["acme", "other"]),
            bucket_ms=self._bucket[partition] * BUCKET_MS,
            slices={
                f"{dimension}={chance.choice(values)}": LiveSlice(viewers_now=chance.randrange(3), views_started=1)
                for dimension, values in (("cdn", ["a", "b\0"]), ("cdn,country", ["a\x1fDE", "b\x1fFR"]))
            },
            **figures,
        )


def landed(dsn: str) -> tuple[Minutes, dict[tuple[str, str, int], LiveMinute]]:
    with psycopg.connect(dsn) as connection:
        query = "SELECT customer_id, dimension, minute, document::text FROM serving.{} WHERE dimension <> 'rejected'"
        steps, minutes = (connection.execute(query.format(name)).fetchall() for name in ("live_steps", "live_minutes"))
    return (
        {(one, two, three): STEPS_DECODER.decode(text) for one, two, three, text in steps},
        {(one, two, three): MINUTE_DECODER.decode(text) for one, two, three, text in minutes},
    )


def query(dsn: str, statement: str) -> object:
    with psycopg.connect(dsn) as connection:
        return (connection.execute(statement).fetchone() or (None,))[0]


def agrees(dsn: str, feed: Feed) -> bool:
    truth = feed.truth()
    steps, minutes = landed(dsn)
    if steps != truth:
        return False
    return minutes == {key: minute_of(one, truth[key[0], WHOLE, key[2]].heard) for key, one in truth.items()}


@pytest.fixture
def services(tmp_path: Path, own_broker: Broker, dsn: str) -> Iterator[list[Service]]:
    started: list[Service] = []
    yield started
    for service in started:
        service.child.kill()


def test_minutes_are_a_recount_of_the_topic_wherever_the_process_is_killed(
    services: list[Service], own_broker: Broker, dsn: str, tmp_path: Path
) -> None:
    feed = Feed(own_broker.bootstrap)

    def start(**settings: str) -> Service:
        service = Service(own_broker.bootstrap, dsn, tmp_path / "serving.log", **({"live_days": "90"} | settings))
        services.append(service)
        return service

    for point in ("live_moved", "live_written", "live_committed", "live_written:2"):
        feed.send(60)
        feed.send(20, commit=False)
        dying = start(crash_at=point)
        if point.endswith(":2"):
            wait_until(lambda: agrees(dsn, feed), SECONDS_MAX, "the first transaction is there")
            feed.send(30)
        wait_until(lambda: not dying.child.is_running, SECONDS_MAX, f"killed at {point}")  # noqa: B023
    first = start()
    wait_until(lambda: agrees(dsn, feed), SECONDS_MAX, "minutes are a recount")
    # A second process waits for the lock, and goes on where the first ends.
    second = start()
    wait_until(second.is_ready, SECONDS_MAX, "the second runs")
    first.child.kill()
    feed.send(60)
    wait_until(lambda: agrees(dsn, feed), SECONDS_MAX, "the second lands")
    second.child.kill()
    # Rejected input counts by the broker's time: its minute is over where the clock is an hour ahead.
    settings = ServingSettings.load(
        {
            "SERVING_POSTGRES_DSN": dsn,
            **variables(own_broker.bootstrap),
            "SERVING_LIVE_STEPS_HOURS": "744",
        }
    )
    died: list[Exception] = []
    landing = LiveLanding(
        settings,
        LiveDatabase(dsn, 10, CrashPoints()),
        topic_ids(settings, TOPICS),
        now_ms=lambda: time.time_ns() // 1_000_000 + HOUR_MS,
        on_death=died.append,
    )
    landing.start()
    counted = (
        "SELECT coalesce(sum(rejected), 0) FROM serving.live_by_minute WHERE customer_id = 'acme' AND value = 'invalid'"
    )
    wait_until(lambda: query(dsn, counted) == feed.rejected, SECONDS_MAX, "rejected input is counted")
    landing.stop()
    assert agrees(dsn, feed)
    truth = [steps for key, steps in feed.truth().items() if key[1] == WHOLE]
    assert query(dsn, "SELECT sum(viewers_max) FROM serving.live_by_minute WHERE dimension = ''") == sum(
        max(steps.values.get("", {}).get("viewers_now", [0])) for steps in truth
    )
    assert died == []
    asyncio.run(_agrees_over_http(dsn, feed.truth()))


async def _agrees_over_http(dsn: str, truth: Minutes) -> None:
    """What the page is answered is what was landed."""
    first, last = min(key[2] for key in truth), max(key[2] for key in truth)
    postgres = pool.Postgres(dsn, service="test", connections_max=1, seconds_max=60)
    await postgres.open()
    try:
        for step_ms in (MINUTE_MS, BUCKET_MS):
            asked = AskedPast(
                customer="acme",
                from_ms=first * MINUTE_MS,
                until_ms=(last + 1) * MINUTE_MS,
                dimension="cdn,country",
                step_ms=step_ms,
                fields="views_started",
            )
            answer = assembled(asked, checked(asked), await PostgresPast(postgres).rows(asked, EVERYTHING))
            for value in answer.values:
                counted = [
                    sum(steps.values.get(value.value, {}).get("views_started", []))
                    for key, steps in truth.items()
                    if key[:2] == ("acme", "cdn,country")
                ]
                assert sum(number or 0 for number in value.series["views_started"]) == sum(counted) > 0
            assert {one.value for one in answer.values} == {"a\x1fDE", "b\x1fFR"}
    finally:
        await postgres.close()


def test_one_process_lands_at_a_time_and_one_that_was_overtaken_writes_nothing(dsn: str) -> None:
    key = ("topic", 0)

    def database() -> LiveDatabase:
        return LiveDatabase(dsn, 2, CrashPoints())

    with closing(database()) as first, closing(database()) as second:
        assert first.begin({key: 5})[key] == (5, 0)
        with pytest.raises(NotOurs):
            second.begin({key: 5})
        first.land({}, {key: LiveMove(5, 8, 100)})
        with pytest.raises(Superseded):
            first.land({("acme", WHOLE, 1): LiveSteps(heard=[1] * 12)}, {key: LiveMove(5, 9, 200)})
        first.close()
        # A position that is stored stays; what the topic has does not change it.
        assert second.begin({key: 5})[key] == (8, 100)
    assert landed(dsn) == ({}, {})


def test_customers_beyond_the_limit_are_added_up_and_old_minutes_go(dsn: str) -> None:
    def minute(of: int, viewers: int) -> LiveSteps:
        return LiveSteps(heard=[1] * 12, values={"": {"viewers_now": [viewers] * 12, "beacons": [of] * 12}})

    with closing(LiveDatabase(dsn, 2, CrashPoints())) as database:
        database.begin({("topic", 0): 0})
        sliced = {("c1", "cdn,country", 7): LiveSteps(values={"a\x1fb": {"viewers_now": [1] * 12}})}
        first = {(f"c{number}", WHOLE, 7): minute(1, number) for number in range(4)}
        database.land(first | sliced, {("topic", 0): LiveMove(0, 1, 7)})
        database.land(
            {("c3", WHOLE, 7): minute(1, 1), ("c9", WHOLE, 7): minute(1, 50)}, {("topic", 0): LiveMove(1, 2, 7)}
        )
        steps, _ = landed(dsn)
        found = {key[0]: one.values[""] for key, one in steps.items()}
        assert {name: (one["viewers_now"][0], one["beacons"][0]) for name, one in found.items()} == {
            "c3": (4, 2),
            "c2": (2, 1),
            GATHERED: (51, 3),
        }
        database.land(
            {("c1", "cdn,country", 8): LiveSteps(), ("c1", WHOLE, 8): minute(1, 1)}, {("topic", 0): LiveMove(2, 3, 8)}
        )
        assert database.expire(steps_before=8, pairs_before=9, minutes_before=8) == 7
        assert database.expire(steps_before=8, pairs_before=9, minutes_before=8) == 0
        steps, minutes = landed(dsn)
        assert sorted(steps) == [("c1", WHOLE, 8), ("c1", "cdn,country", 8)]
        assert sorted(minutes) == [("c1", WHOLE, 8)]


def test_pairs_are_found_by_their_own_index_among_minutes_that_stay(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO serving.live_minutes"
            " SELECT 'acme', CASE WHEN n % 500 = 0 THEN 'cdn,country' ELSE 'cdn' END, n, '{}' FROM generate_series(1, 20000) AS n"
        )
        connection.execute("ANALYZE serving.live_minutes")
        plan = connection.execute(f"EXPLAIN {EXPIRE_PAIRS}", (19_000, 10_000)).fetchall()
    assert [line for (line,) in plan if "live_pairs_by_minute" in line]


def test_minutes_of_a_customer_whose_data_was_deleted_do_not_come_back(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO serving.forgotten VALUES ('c1', '', %s), ('c2', 'hash of a viewer', 0)", (8 * MINUTE_MS,)
        )
    with closing(LiveDatabase(dsn, 9, CrashPoints())) as database:
        database.begin({("topic", 0): 0})
        minutes = {
            (customer, WHOLE, minute): LiveSteps(heard=[1] * 12) for customer in ("c1", "c2") for minute in (7, 8, 9)
        }
        database.land(
            {key: steps for key, steps in minutes.items() if key == ("c1", WHOLE, 7)}, {("topic", 0): LiveMove(0, 1, 7)}
        )
        database.land(minutes, {("topic", 0): LiveMove(1, 2, 9)})
    assert set(landed(dsn)[0]) == set(minutes) - {("c1", WHOLE, 7), ("c1", WHOLE, 8)}
