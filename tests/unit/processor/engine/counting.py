"""A small application for tests of the engine: counts records by key and closes a key that is silent for 100 ms."""

from typing import Any

import msgspec

from services.processor.engine.application.application import Application, Context, StoreSpec
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from shared import topics
from shared.codec import Undecodable
from shared.topics import BEACONS, VIEWS

SILENT_MS = 100
COUNTS = StoreSpec[int](name="counts", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(int).decode)


class Counting:
    SPEC = COUNTS

    def __init__(self, context: Context) -> None:
        self._context = context
        self._counts = context.store(self.SPEC)

    def fold(self, record: Record) -> None:
        assert record.key is not None
        if record.value == b"garbage":
            raise Undecodable("garbage")
        if record.value == b"poison":
            raise ZeroDivisionError("a bug in the application")
        count = (self._counts.get(record.key) or 0) + 1
        if record.value == b"huge":
            count = 1 << 70
        self._counts.put(record.key, count, self._context.clock_ms + SILENT_MS)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        assert spec is self.SPEC
        if key.startswith(b"unfinishable"):
            raise ZeroDivisionError("a bug in the application")
        self._context.emit(topics.VIEWS, key, str(self._counts.get(key)).encode())
        self._counts.delete(key)


APPLICATION = Application(
    name="counting",
    inputs=(topics.BEACONS,),
    outputs=(topics.VIEWS,),
    changelog=topics.VIDEO_VIEWS_CHANGELOG,
    stores=(COUNTS,),
    start=Counting,
)


def record(offset: int, key: bytes = b"a", value: bytes = b"", at_ms: int = 1000) -> Record:
    """A record of the application's input."""
    return Record(BEACONS.name, 0, offset, at_ms, key, value)


def values(driver: Driver, topic: topics.Topic = VIEWS) -> list[tuple[bytes, bytes]]:
    """What came out on a topic: keys and values."""
    return [(output.key, output.value) for output in driver.outputs(topic)]
