"""Media requests of an application: they last as long as their checkpoint, are reported once, and one that fails is rejected."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from services.processor.engine.application.application import Application, Context, StoreSpec, media_store
from services.processor.engine.application.media_requests import Corrupt, MediaOutcome, MediaRequest, Verifying
from services.processor.engine.core.core import Core
from services.processor.engine.driver import Driver
from services.processor.engine.record import Record
from services.processor.engine.state.local import MemoryStore
from shared import topics
from shared.topics import BEACONS, REJECTED, VIEWS

Drive = Callable[[Application], Driver]

REQUESTS = media_store(2)
COUNTS = StoreSpec[int](name="counts", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(int).decode)


class Storing:
    """Has every record's value stored as an object, one at a time under a key; emits how many there were."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._counts = context.store(COUNTS)

    def fold(self, record: Record) -> None:
        key, value = record.key or b"", record.value or b""
        count = (self._counts.get(key) or 0) + 1
        self._counts.put(key, count)
        name = f"{key.decode()}/{count}"
        request = MediaRequest(name, BEACONS.name, ((record.offset, 1),), len(value), hashlib.sha256(value).digest())
        self._context.request_media(key, request)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None: ...

    def media_done(self, key: bytes, request: MediaRequest, outcome: MediaOutcome) -> None:
        if key == b"poison" and request.name.endswith("/1"):
            raise ZeroDivisionError("a bug in the application")
        self._context.emit(VIEWS, key, f"{request.name} {outcome}".encode())


APPLICATION = Application(
    name="storing",
    inputs=(BEACONS,),
    outputs=(VIEWS, REJECTED),
    changelog=topics.VIDEO_VIEWS_CHANGELOG,
    stores=(COUNTS, REQUESTS),
    start=Storing,
    media=REQUESTS,
)


def outcomes(driver: Driver) -> list[bytes]:
    return [output.value for output in driver.outputs(VIEWS)]


def test_what_is_asked_for_is_stored_and_reported_once(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for number in range(3):
        driver.pipe(BEACONS, b"a", b"content %d" % number, at_ms=1_000)
    assert outcomes(driver) == [b"a/1 stored", b"a/2 stored", b"a/3 stored"]
    assert driver.objects == {f"a/{number + 1}": b"content %d" % number for number in range(3)}
    assert driver.rows == {"counts": 1, "media_requests": 0}


def test_a_later_request_under_a_key_stands_in_for_an_earlier_one(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.objects_away = True
    for number in range(3):
        driver.pipe(BEACONS, b"a", b"content %d" % number, at_ms=1_000)
    driver.objects_away = False
    driver.work_media()
    assert outcomes(driver) == [b"a/3 stored"]


def test_one_that_the_application_fails_on_is_rejected_and_the_rest_goes_on(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for number, key in enumerate((b"a", b"poison", b"b", b"poison")):
        driver.pipe(BEACONS, key, b"content %d" % number, at_ms=1_000)
    assert outcomes(driver) == [b"a/1 stored", b"b/1 stored", b"poison/2 stored"]
    (rejected,) = driver.outputs(REJECTED)
    assert (rejected.key, dict(rejected.headers)["reason"]) == (b"poison", b"fire_failed")
    assert driver.rows["media_requests"] == 0


def test_an_outcome_of_what_was_dropped_with_its_checkpoint_is_passed_over() -> None:
    core = Core(APPLICATION, 0, MemoryStore())
    core.fold([Record(BEACONS.name, 0, 0, 1_000, b"a", b"content")])
    ((key, request),) = core.media_requests.items()
    core.abort()
    assert core.media_requests == {}
    core.media_done(key, request, "stored")
    assert not core.is_dirty
    # Given again, it is asked for again, and then it counts.
    core.fold([Record(BEACONS.name, 0, 0, 1_000, b"a", b"content")])
    core.cut()
    core.commit()
    core.abort()
    assert dict(core.media_requests) == {key: request}
    core.media_done(key, request, "stored")
    assert [output.value for output in core.cut().outputs] == [b"a/1 stored"]


def test_an_application_that_has_declared_none_may_make_none() -> None:
    bare = Application(
        name="bare",
        inputs=(BEACONS,),
        outputs=(VIEWS, REJECTED),
        changelog=topics.VIDEO_VIEWS_CHANGELOG,
        stores=(COUNTS, REQUESTS),
        start=Storing,
    )
    driver = Driver(bare)
    driver.pipe(BEACONS, b"a", b"content", at_ms=1_000)
    assert [dict(output.headers)["reason"] for output in driver.outputs(REJECTED)] == [b"fold_failed"]


@pytest.mark.parametrize("values", [(b"one",), (b"one", b"two", b"three"), (b"one", b"TWO"), ()])
def test_bytes_are_held_against_what_was_announced(values: tuple[bytes, ...]) -> None:
    request = MediaRequest("a", BEACONS.name, ((0, 2),), 6, hashlib.sha256(b"onetwo").digest())

    def verify() -> None:
        verifying = Verifying(request)
        for value in values:
            verifying.add(value)
        verifying.end()

    with pytest.raises(Corrupt):
        verify()
