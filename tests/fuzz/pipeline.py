"""The applications in memory, fed by requests; what may not happen is collected, never raised.

What may not happen: the intake or a fold raises; something goes to `rejected` for a reason that no document names; a row
passes its byte bound; a record costs more than `CALLS_MAX` function calls; a reader of an output cannot read it.
"""

import cProfile
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Final, cast

from services.collector.intake.post import InvalidInput, Post, Rules
from services.collector.intake.recording import head_of
from services.collector.intake.sender.client import Agent, Client, Place
from services.collector.sink.records import records_of
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from services.processor.settings import ApplicationName
from services.serving.rows import row_of
from services.webhooks.message import message_of
from shared import codec, topics
from shared.chunks import Chunk, headers_of
from shared.codec import Undecodable
from shared.partitioning import recording_key
from shared.topics import Topic
from tests.fuzz.hostile import KEYS, PARSERS, body

T0: Final = 1_790_000_000_000
MINUTE_MS: Final = 60_000
#: What the processing of one record may cost, timers that fall due with it included: calls of Python and C functions.
CALLS_MAX: Final = 400_000
RULES: Final = Rules(collector_id="c-1")
CLIENT: Final = Client(
    address="203.0.113.7", user_agent="a", agent=Agent("Chrome", "Linux", "desktop"), place=Place("DE", 3320)
)
ROUTES: Final = (*PARSERS, "recordings")
#: What an application may write to `rejected`, by the reason and the beginning of the detail, and the document that names it.
NAMED: Final[Mapping[str, tuple[str, ...]]] = {
    # docs/view.md, section Order.
    "video_views": ("undecodable: the view is reported by ", "undecodable: the beacon's sequence number is "),
    # docs/traces.md, docs/apis.md: event times that are ahead of the broker's.
    "traces": ("undecodable: its time is ",),
    "api_baselines": ("undecodable: its time is ",),
}


def _hot_row(value: bytes) -> None:
    row = row_of(value)
    if isinstance(row, str):
        raise Undecodable(row)


#: How the services behind the processor read its outputs: what one of them cannot read would be lost, or end it again and again.
READERS: Final[Mapping[str, Callable[[bytes], object]]] = {
    topics.VIEWS.name: _hot_row,
    topics.LIVE.name: codec.LIVE.decode,
    topics.TRACES.name: codec.TRACE.decode,
    topics.API_CHANGES.name: codec.API_CHANGE.decode,
    topics.API_WINDOWS.name: codec.API_WINDOW.decode,
    topics.API_ANOMALIES.name: message_of,
    topics.RECORDING_INDEX.name: codec.RECORDING.decode,
}

_Headers = tuple[tuple[str, bytes | None], ...]
_Record = tuple[Topic, bytes, bytes, _Headers]


class Pipeline:
    """Every application on one partition, and what went wrong in it."""

    def __init__(self, names: Iterable[ApplicationName]) -> None:
        self.faults: Counter[str] = Counter()
        self.drivers: dict[str, Driver] = {}
        self._applications: dict[str, Application] = {}
        self._seen: Counter[str] = Counter()
        self.calls_most: Counter[str] = Counter()
        self.row_bytes_most: Counter[str] = Counter()
        #: Outputs that a reader has read, by topic.
        self.read: Counter[str] = Counter()
        for name in names:
            self._applications[name] = APPLICATIONS[name]({})
            self.drivers[name] = Driver(self._applications[name])
        self._clock_ms = T0

    def request(self, rng: Random, route: str) -> None:
        """One hostile request; time passes with it, now and then for long."""
        self._clock_ms += rng.choice((0, 5, 50, 1_000, 1_000, 20_000, 6 * MINUTE_MS if rng.random() < 0.2 else 1))
        if rng.random() < 0.002:
            self._clock_ms += 90 * MINUTE_MS
        try:
            records = _recording(rng, self._clock_ms) if route == "recordings" else _taken(rng, route, self._clock_ms)
        except Exception as error:  # noqa: BLE001 the finding itself
            self.faults[f"intake of {route} raises {type(error).__name__}: {error}"[:200]] += 1
            return
        for record in records:
            self._feed(*record)

    def settle(self, after_ms: int = 0) -> None:
        """Lets time pass, passes on what one application writes for another, and looks at what was rejected."""
        self._clock_ms += after_ms
        for name, driver in self.drivers.items():
            self._guarded(name, lambda driver=driver: driver.advance_to(self._clock_ms))
        for name in list(self.drivers):
            calls = self.drivers[name].outputs(topics.API_CALLS)
            for output in calls[self._seen[f"{name} calls"] :]:
                self._feed(topics.API_CALLS, output.key, output.value or b"", ())
            self._seen[f"{name} calls"] = len(calls)
        for name, driver in self.drivers.items():
            rejected = driver.outputs(topics.REJECTED)
            for output in rejected[self._seen[f"{name} rejected"] :]:
                headers = {header: (value or b"").decode() for header, value in output.headers}
                why = f"{headers['reason']}: {headers['detail']}"
                if not any(why.startswith(named) for named in NAMED.get(name, ())):
                    self.faults[f"{name} rejects {why}"[:200]] += 1
            self._seen[f"{name} rejected"] = len(rejected)
            for topic in self._applications[name].outputs:
                self._read_new(name, topic)

    def _read_new(self, name: str, topic: Topic) -> None:
        """Reads what the application has written to the topic since, as the services behind it do."""
        reader = READERS.get(topic.name)
        if reader is None:
            return
        outputs, seen = self.drivers[name].outputs(topic), f"{name} {topic.name} read"
        for output in outputs[self._seen[seen] :]:
            try:
                reader(output.value or b"")
            except Exception as error:  # noqa: BLE001 the finding itself
                self.faults[f"a record of {topic.name} cannot be read: {error}"[:300]] += 1
            self.read[topic.name] += 1
        self._seen[seen] = len(outputs)

    def _feed(self, topic: Topic, key: bytes, value: bytes, headers: _Headers) -> None:
        for name, application in self._applications.items():
            if topic.name in {one.name for one in application.inputs}:
                self._fold(name, topic, key, value, headers)

    def _fold(self, name: str, topic: Topic, key: bytes, value: bytes, headers: _Headers) -> None:
        driver = self.drivers[name]
        # Only a driver that crashes reads its changelog again: what is looked at need not be kept.
        before = len(driver.changelog)
        profile = cProfile.Profile()

        def work() -> None:
            profile.runcall(driver.pipe, topic, key, value, at_ms=self._clock_ms, headers=headers)

        if not self._guarded(name, work):
            return
        calls = sum(entry.callcount for entry in profile.getstats())
        self.calls_most[name] = max(self.calls_most[name], calls)
        if calls > CALLS_MAX:
            self.faults[f"{name}: a record costs more than {CALLS_MAX} calls"] += 1
        specs = {spec.id: spec for spec in self._applications[name].stores}
        changelog = cast("list[tuple[bytes, bytes | None]]", driver.changelog)
        written, changelog[before:] = changelog[before:], []
        for row_key, row in written:
            spec = specs.get(row_key[0])
            if row is None or spec is None:
                continue
            stored = f"{name}.{spec.name}"
            self.row_bytes_most[stored] = max(self.row_bytes_most[stored], len(row))
            if len(row) > spec.row_bytes_max:
                self.faults[f"a row of {stored} passes {spec.row_bytes_max} bytes"] += 1

    def _guarded(self, name: str, work: Callable[[], None]) -> bool:
        """Does the work; what it raises is a fault, after which the application begins again with nothing."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 the finding itself
            self.faults[f"{name} raises {type(error).__name__}: {error}"[:300]] += 1
            self.drivers[name] = Driver(self._applications[name])
            self._seen.subtract({seen: count for seen, count in self._seen.items() if seen.startswith(f"{name} ")})
            return False
        return True


def _taken(rng: Random, route: str, clock_ms: int) -> list[_Record]:
    """The records of one hostile body."""
    post = Post(
        origin="/",
        body=body(rng, route, clock_ms),
        key="acme",
        content_type="application/x-protobuf" if route == "otlp-protobuf" else "application/json",
        recv_time_ms=clock_ms,
        client=CLIENT,
        in_seconds=rng.random() < 0.5,
        batch_id="b",
    )
    found = PARSERS[route](post, RULES)
    # What the collector rejects is its own topic's; what it accepts goes on.
    named = {topic.name: topic for topic in (topics.BEACONS, topics.SPANS, topics.API_CALLS)}
    records = records_of(found, post, topics.PROFILES["laptop"])
    return [(named[one.topic], one.key or b"", one.value, ()) for one in records if one.topic in named]


def _recording(rng: Random, clock_ms: int) -> list[_Record]:
    """The chunks of one upload; some are torn, some come twice, numbers leap."""
    post = Post(origin="/", body=b"", key="acme", content_type="application/json", recv_time_ms=clock_ms)
    sequence = str(rng.choice((0, 1, 2, 3, 50, 10**6, rng.randrange(600))))
    try:
        head = head_of(post, f"s{rng.randrange(KEYS)}", sequence, None, rules=RULES, bytes_max=10**8)
    except InvalidInput:
        return []
    upload, hash_, end = f"u{rng.randrange(10**6)}", hashlib.sha256(), 0
    parts = [rng.randbytes(rng.choice((1, 9, 900))) for _ in range(rng.choice((1, 1, 1, 2, 5)))]
    records: list[_Record] = []
    for index, part in enumerate(parts):
        hash_.update(part)
        end += len(part)
        count = len(parts) if index + 1 == len(parts) else 0
        digest = hash_.digest() if rng.random() < 0.97 else bytes(32)
        chunk = Chunk(head.session_id, head.sequence, upload, index, count, end, digest, head.content_type)
        headers = tuple(
            (name, value.encode() if isinstance(value, str) else value) for name, value in headers_of(chunk)
        )
        records += [(topics.RECORDINGS, recording_key("acme", head.session_id), part, headers)] * rng.choice(
            (1, 1, 1, 0, 2)
        )
    return records
