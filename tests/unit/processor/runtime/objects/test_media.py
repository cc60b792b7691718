"""Media requests worked for real: records of a broker in memory, objects in a folder."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from prometheus_client import REGISTRY

from services.processor.engine.application.media_requests import MediaOutcome, MediaRequest, Run
from services.processor.runtime.objects import media as media_module
from services.processor.runtime.objects import media_reader, object_store
from services.processor.runtime.objects.media import RETRY_SECONDS_MAX, Media, MediaPool, retry_seconds
from services.processor.runtime.objects.media_reader import Gone, MediaReader, Stopped, Unread
from services.processor.runtime.objects.object_store import (
    ObjectMissing,
    ObjectRefused,
    ObjectsAway,
    ObjectStore,
    ObjectsWrong,
)
from services.rim.process.crash_points import CrashPoints
from shared.settings import Settings
from tests.refusing_store import RefusingStore, refusing_store

TOPIC = "recordings"
APPLICATION = "recordings"


class Broker:
    """The client library's own broker in memory."""

    def __init__(self) -> None:
        config: dict[str, Any] = {"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0}
        self._producer = Producer({**config, "message.max.bytes": 2_000_000})
        brokers = self._producer.list_topics(TOPIC, timeout=20).brokers.values()
        self.settings = Settings(kafka_bootstrap=",".join(f"{one.host}:{one.port}" for one in brokers))

    def append(self, *values: bytes) -> int:
        """The offset of the first of them, in partition 0."""
        offsets: list[int] = []
        for value in values:
            self._producer.produce(
                TOPIC, value, partition=0, on_delivery=lambda _, message: offsets.append(message.offset() or 0)
            )
            assert self._producer.flush(20) == 0
        return offsets[0]


@pytest.fixture(scope="module")
def broker() -> Broker:
    return Broker()


@pytest.fixture
def pool(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MediaPool]:
    """A pool whose objects go in parts when they are larger than 400 KB: the broker in memory keeps 5 MB."""
    monkeypatch.setattr(object_store, "PART_BYTES", 400_000)
    made = pool_of(broker, ObjectStore(str(tmp_path)), 2)
    yield made
    made.close()


def pool_of(broker: Broker, objects: ObjectStore, threads: int, *, refused_seconds: float = 3_600) -> MediaPool:
    return MediaPool(broker.settings, APPLICATION, objects, threads, CrashPoints(), refused_seconds=refused_seconds)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[RefusingStore]:
    monkeypatch.setattr(media_module, "RETRY_SECONDS_MIN", 0.01)
    with refusing_store() as store:
        for name, value in store.environ.items():
            monkeypatch.setenv(name, value)
        yield store


def request(name: str, content: bytes, *runs: Run) -> MediaRequest:
    return MediaRequest(name, TOPIC, runs, len(content), hashlib.sha256(content).digest())


def worked(pool: MediaPool, asked: MediaRequest) -> MediaOutcome:
    return pool.submit(0, asked, threading.Event()).result(60)


def read(broker: Broker, *runs: Run, size_bytes: int = 1) -> bytes:
    reader = MediaReader(broker.settings, APPLICATION)
    return b"".join(reader.read(TOPIC, 0, runs, size_bytes, threading.Event()))


@pytest.mark.parametrize("size_bytes", [1, 10_000_000], ids=["small", "large"])
def test_runs_are_read_in_their_order_wherever_they_stand(broker: Broker, size_bytes: int) -> None:
    first = broker.append(*(b"<%d>" % number for number in range(20)))
    # Next to each other, a little apart, far apart, and back again.
    runs = ((first, 2), (first + 2, 1), (first + 5, 1), (first + 15, 3), (first + 4, 1))
    found = read(broker, *runs, size_bytes=size_bytes)
    assert found == b"<0><1><2><5><15><16><17><4>"


class Log:
    """A client of a log with holes, which the broker in memory cannot make."""

    def __init__(self, *values: bytes | None) -> None:
        """`values` by offset; None: a transaction's marker, or a record of one that was aborted."""
        self._values = values
        self._messages: Iterator[LogMessage] = iter([])
        self.assigned: list[int] = []

    def assign(self, partitions: list[TopicPartition]) -> None:
        first = partitions[0].offset
        self.assigned.append(first)
        self._messages = (LogMessage(at, value) for at, value in enumerate(self._values) if at >= first and value)

    def unassign(self) -> None:
        self._messages = iter([])

    def poll(self, seconds: float) -> "LogMessage | None":
        return next(self._messages, None)


@dataclass
class LogMessage:
    at: int
    content: bytes

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes:
        return self.content


def test_what_does_not_come_between_two_runs_is_not_missed(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of a payload whose chunks were produced in two transactions, and of one beside such a transaction.
    log = Log(b"<0>", b"<1>", None, b"<3>", b"<4>", b"other", None, b"<7>")
    monkeypatch.setattr(media_reader, "Consumer", lambda config: log)
    assert read(broker, (0, 2), (3, 2), (7, 1)) == b"<0><1><3><4><7>"
    assert log.assigned == [0], "it reads on"


def test_a_record_that_is_missing_from_a_run_is_gone(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media_reader, "Consumer", lambda config: Log(b"<0>", None, b"<2>"))
    with pytest.raises(Gone, match="goes from 1 to 2"):
        read(broker, (0, 3))


def test_one_reader_reads_one_request_after_the_other(broker: Broker) -> None:
    first = broker.append(*(b"<%d>" % number for number in range(10)))
    reader = MediaReader(broker.settings, APPLICATION)
    for number in (7, 0, 3, 3):
        runs = ((first + number, 2),)
        assert b"".join(reader.read(TOPIC, 0, runs, 6, threading.Event())) == b"<%d><%d>" % (number, number + 1)


def test_reading_that_is_broken_off_leaves_the_reader_fit_for_the_next(broker: Broker) -> None:
    first = broker.append(*(b"<%d>" % number for number in range(10)))
    reader = MediaReader(broker.settings, APPLICATION)
    values = reader.read(TOPIC, 0, ((first, 10),), 30, threading.Event())
    assert next(values) == b"<0>"
    values.close()
    assert next(reader.read(TOPIC, 0, ((first + 4, 1),), 30, threading.Event())) == b"<4>"


def test_a_partition_that_is_given_up_stops_the_reading(broker: Broker) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Stopped):
        list(MediaReader(broker.settings, APPLICATION).read(TOPIC, 0, ((0, 1),), 1, stopped))


def test_a_broker_that_says_nothing_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media_reader, "SILENT_SECONDS_MAX", 0.3)
    nowhere = Settings(kafka_bootstrap="127.0.0.1:1")
    with pytest.raises(Unread):
        list(MediaReader(nowhere, APPLICATION).read(TOPIC, 0, ((0, 1),), 1, threading.Event()))


@pytest.mark.parametrize("chunks", [1, 3, 9])
def test_an_object_is_the_bytes_of_its_records(broker: Broker, pool: MediaPool, tmp_path: Path, chunks: int) -> None:
    values = [bytes([number]) * 100_000 for number in range(chunks)]
    first = broker.append(*values)
    content = b"".join(values)
    name = f"acme/s-{chunks}/000000"
    assert worked(pool, request(name, content, (first, chunks))) == "stored"
    assert (tmp_path / name).read_bytes() == content
    # Once more, as after a crash: the same.
    assert worked(pool, request(name, content, (first, chunks))) == "stored"
    assert [path.name for path in (tmp_path / "acme" / f"s-{chunks}").iterdir()] == ["000000"]


@pytest.mark.parametrize("chunks", [2, 9])
def test_bytes_that_are_not_those_announced_leave_no_object(
    broker: Broker, pool: MediaPool, tmp_path: Path, chunks: int
) -> None:
    values = [bytes([number]) * 100_000 for number in range(chunks)]
    first = broker.append(*values[:-1], b"!" * 100_000)
    assert worked(pool, request("acme/s/000001", b"".join(values), (first, chunks))) == "corrupt"
    assert worked(pool, request("acme/s/000001", b"".join(values)[:-1], (first, chunks))) == "corrupt"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    # The thread works on.
    again = broker.append(*values)
    assert worked(pool, request("acme/s/000001", b"".join(values), (again, chunks))) == "stored"


def test_records_that_kafka_has_dropped_are_gone_for_good(pool: MediaPool) -> None:
    own = Broker()
    own.append(*[bytes(900_000)] * 12)
    with pytest.raises(Gone, match="begins at"):
        read(own, (0, 1))
    other = pool_of(own, pool._objects, 1)
    assert worked(other, request("acme/s/000002", bytes(900_000), (0, 1))) == "gone"
    other.close()


class Core:
    """Stands in for a core: the requests and their reported outcomes."""

    def __init__(self, **requests: MediaRequest) -> None:
        self.media_requests = {key.encode(): asked for key, asked in requests.items()}
        self.outcomes: list[tuple[bytes, str]] = []

    def media_done(self, key: bytes, asked: MediaRequest, outcome: MediaOutcome) -> None:
        if self.media_requests.get(key) == asked:
            del self.media_requests[key]
            self.outcomes.append((key, outcome))


def turn_until(media: Media, core: Core, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        media.settle(core)  # type: ignore[arg-type]
        media.begin(core)  # type: ignore[arg-type]
        time.sleep(0.01)


def test_pending_requests_are_worked_and_reported(broker: Broker, pool: MediaPool) -> None:
    first = broker.append(*(b"%d" % number for number in range(9)))
    core = Core(**{f"k{n}": request(f"acme/k{n}/000000", b"%d" % n, (first + n, 1)) for n in range(9)})
    turn_until(Media(APPLICATION, 0, pool), core, lambda: not core.media_requests)
    assert sorted(core.outcomes) == [(b"k%d" % number, "stored") for number in range(9)]


def test_a_store_that_is_away_is_tried_again(broker: Broker, pool: MediaPool, tmp_path: Path) -> None:
    (tmp_path / "acme").write_text("in the way")
    first = broker.append(b"content")
    core = Core(k=request("acme/k/000000", b"content", (first, 1)))
    media = Media(APPLICATION, 0, pool)
    turn_until(media, core, lambda: bool(media._waiting))
    assert core.outcomes == []
    (tmp_path / "acme").unlink()
    turn_until(media, core, lambda: core.outcomes == [(b"k", "stored")])


def test_a_request_may_fail_for_days_and_waits_no_longer_than_the_maximum() -> None:
    assert [retry_seconds(tries) for tries in (0, 1, 2)] == [0.5, 1.0, 2.0]
    assert {retry_seconds(tries) for tries in (6, 100, 1_000_000)} == {RETRY_SECONDS_MAX}


@pytest.mark.thorough
def test_requests_that_fail_for_good_hold_no_place_of_others(
    broker: Broker, pool: MediaPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media_module, "RETRY_SECONDS_MIN", 0.01)
    (tmp_path / "bad").write_text("in the way")
    first = broker.append(b"content")
    names = [*(f"bad/k{number}" for number in range(8)), *(f"good/k{number}" for number in range(50))]
    core = Core(**{name.replace("/", "_"): request(f"{name}/000000", b"content", (first, 1)) for name in names})
    media = Media(APPLICATION, 0, pool)
    turn_until(media, core, lambda: len(core.outcomes) == 50)
    assert len(core.media_requests) == 8
    (tmp_path / "bad").unlink()
    turn_until(media, core, lambda: not core.media_requests)


@pytest.mark.thorough
def test_objects_that_are_refused_for_good_are_rejected_and_hold_up_no_others(
    broker: Broker, refusing: RefusingStore
) -> None:
    refusing.refusals["/bad"] = 403
    first = broker.append(b"content")
    keys = [*(f"bad{number}" for number in range(8)), *(f"good{number}" for number in range(50))]
    core = Core(**{key: request(f"acme/{key}/000000", b"content", (first, 1)) for key in keys})
    patient = pool_of(broker, ObjectStore("s3://bucket"), 1)
    media = Media(APPLICATION, 0, patient)
    turn_until(media, core, lambda: len(core.outcomes) == 50 and min(map(tries_of(refusing), keys[:8])) > 2)
    assert sorted(core.media_requests) == [key.encode() for key in keys[:8]]
    patient.close()
    # The same, for as long as is waited: none.
    hasty = pool_of(broker, ObjectStore("s3://bucket"), 1, refused_seconds=0)
    turn_until(Media(APPLICATION, 0, hasty), core, lambda: not core.media_requests)
    assert sorted(core.outcomes[50:]) == [(key.encode(), "refused") for key in keys[:8]]
    hasty.close()


def tries_of(store: RefusingStore) -> Callable[[str], int]:
    return lambda key: store.tries.get(f"acme/{key}/000000", 0)


def test_a_refusal_that_does_not_last_sets_nothing_aside(
    broker: Broker, refusing: RefusingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = broker.append(b"content")
    core = Core(k=request("acme/k/000000", b"content", (first, 1)))
    pool = pool_of(broker, ObjectStore("s3://bucket"), 1, refused_seconds=100)
    media = Media(APPLICATION, 0, pool)
    now = time.monotonic()
    monkeypatch.setattr(media_module.time, "monotonic", lambda: now)
    refusing.refusals["acme"] = 403
    outcomes_of(media, core)
    assert media._waiting[b"k"].refused_since == now
    # Between two refusals it is away: the time of refusals begins again.
    now += 99
    refusing.refusals["acme"] = 409
    outcomes_of(media, core)
    assert media._waiting[b"k"].refused_since is None
    now += 99
    refusing.refusals["acme"] = 404
    outcomes_of(media, core)
    assert core.outcomes == []
    now += 99
    refusing.refusals.clear()
    outcomes_of(media, core)
    assert core.outcomes == [(b"k", "stored")]
    pool.close()


def outcomes_of(media: Media, core: Core) -> None:
    """Begins what is due, and settles it when it is done."""
    media.begin(core)  # type: ignore[arg-type]
    assert media._under_way
    for one in list(media._under_way.values()):
        one.outcome.exception(60)
    media.settle(core)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "error"), [(400, ObjectRefused), (401, ObjectRefused), (413, ObjectRefused), (409, ObjectsAway)]
)
def test_an_answer_of_4xx_refuses_an_object_but_for_conflicts(
    refusing: RefusingStore, status: int, error: type[Exception]
) -> None:
    refusing.refusals["acme"] = status
    with pytest.raises(error, match=str(status)):
        ObjectStore("s3://bucket").put("acme/s/000000", iter([b"x"]), 1)


def test_what_is_dropped_while_it_is_worked_is_reported_to_nobody_and_may_be_requested_again(
    broker: Broker, pool: MediaPool
) -> None:
    first = broker.append(b"one", b"two")
    core = Core(k=request("acme/k/000000", b"one", (first, 1)))
    media = Media(APPLICATION, 0, pool)
    media.begin(core)  # type: ignore[arg-type]
    core.media_requests[b"k"] = request("acme/k/000001", b"two", (first + 1, 1))
    turn_until(media, core, lambda: bool(core.outcomes))
    assert core.outcomes == [(b"k", "stored")]
    assert core.media_requests == {}


def test_a_partition_that_is_given_up_forgets_what_is_under_way(broker: Broker, pool: MediaPool) -> None:
    first = broker.append(b"one")
    core = Core(k=request("acme/k/000000", b"one", (first, 1)))
    media = Media(APPLICATION, 0, pool)
    media.begin(core)  # type: ignore[arg-type]
    media.forget()
    assert media._under_way == {}
    turn_until(media, core, lambda: core.outcomes == [(b"k", "stored")])


def test_a_store_that_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ObjectsWrong):
        ObjectStore(str(tmp_path / "file"))
    with pytest.raises(ObjectsWrong):
        ObjectStore("gopher://bucket")


async def test_an_object_is_read_back_in_pieces(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path))
    store.put("acme/s/000000", iter([b"one ", b"two"]), 7)
    assert b"".join([piece async for piece in store.read("acme/s/000000")]) == b"one two"
    with pytest.raises(ObjectMissing):
        [piece async for piece in store.read("acme/s/000001")]
    (tmp_path / "in the way").write_text("")
    with pytest.raises(ObjectsAway):
        store.put("in the way/000000", iter([b"x"]), 1)


@pytest.mark.parametrize("outcome", ["stored", "gone", "corrupt", "refused", "failed", "declined"])
def test_outcomes_are_counted_from_0_before_the_first(outcome: str, tmp_path: Path) -> None:
    MediaPool(Settings(), "counted", ObjectStore(str(tmp_path)), 1, CrashPoints(), refused_seconds=1).close()
    labels = {"application": "counted", "outcome": outcome}
    assert REGISTRY.get_sample_value("playhead_processor_media_total", labels) == 0
