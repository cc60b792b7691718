"""An application that raises: what is rejected, which keys are quarantined, what is put back, and when the slot ends."""

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from services.processor.engine.application.application import Application, Context, StoreSpec
from services.processor.engine.application.failure_rules import FAILING_KEYS_MAX, FailureRules
from services.processor.engine.core.core import Core
from services.processor.engine.driver import Driver
from services.processor.engine.record import Output, Record
from services.processor.engine.state.failures import ReleaseBroken
from services.processor.engine.state.local import MemoryStore
from shared.topics import BEACONS, REJECTED, VIDEO_VIEWS_CHANGELOG, VIEWS
from tests.unit.processor.engine.counting import APPLICATION, COUNTS, Counting

Drive = Callable[[Application], Driver]

RULES = FailureRules(quarantine_failures=3, broken_release_keys=5, broken_release_records=100)
RULED = dataclasses.replace(APPLICATION, failure_rules=RULES, version="1")


def reasons(driver: Driver) -> list[str]:
    return [dict(output.headers)["reason"].decode() for output in driver.outputs(REJECTED)]


def finished(driver: Driver) -> list[tuple[bytes, bytes | None]]:
    return [(output.key, output.value) for output in driver.outputs(VIEWS)]


def poison(driver: Driver, key: bytes, times: int, at_ms: int = 1000) -> None:
    for _ in range(times):
        driver.pipe(BEACONS, key, b"poison", at_ms=at_ms)


@pytest.mark.thorough
def test_many_keys_that_fail_end_nothing_and_the_others_go_on(drive: Drive) -> None:
    """51 failures, each of its own key, ended every slot, one after the other."""
    driver = drive(RULED)
    for number in range(300):
        poison(driver, b"hostile-%d" % number, 1)
        driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    driver.advance_to(2000)
    assert reasons(driver) == ["fold_failed"] * 300
    assert finished(driver) == [(b"a", b"300")]
    assert driver.quarantined == {}


def test_many_that_fail_in_one_checkpoint_are_folded_again_once() -> None:
    folded = 0

    class Counted(Counting):
        def fold(self, record: Record) -> None:
            nonlocal folded
            folded += 1
            super().fold(record)

    driver = Driver(dataclasses.replace(RULED, start=Counted))
    values = [(BEACONS, b"key-%d" % number, b"poison" if number % 2 else b"", 1000) for number in range(1_000)]
    driver.pipe_all(values, commit_every=1_000)
    assert reasons(driver) == ["fold_failed"] * 500
    # Up to the first failure twice.
    assert folded == 1_002


def test_a_key_that_fails_again_and_again_is_quarantined_with_its_row(drive: Drive) -> None:
    driver = drive(RULED)
    for value in (b"", b"", b"poison", b"poison", b"poison", b"", b"poison", b""):
        driver.pipe(BEACONS, b"a", value, at_ms=1000)
    driver.pipe(BEACONS, b"b", b"", at_ms=1000)
    driver.advance_to(2000)
    assert reasons(driver) == ["fold_failed"] * 3 + ["quarantined"] * 3
    assert [output.value for output in driver.outputs(REJECTED)][3:] == [b"", b"poison", b""]
    # Its row is kept, and its deadline does not come.
    assert finished(driver) == [(b"b", b"1")]
    assert driver.rows == {"counts": 0}
    (held,) = driver.quarantined.values()
    assert (held.failures, held.rejected, held.rows) == (3, 3, 1)
    assert held.reason == "ZeroDivisionError: a bug in the application"


def test_a_released_key_goes_on_from_its_row(drive: Drive) -> None:
    driver = drive(RULED)
    for value in (b"", b"", b"poison", b"poison", b"poison", b""):
        driver.pipe(BEACONS, b"a", value, at_ms=1000)
    driver.pipe(BEACONS, b"garbage", b"garbage", at_ms=5000)
    driver.release(b"a")
    assert driver.quarantined == {}
    driver.pipe(BEACONS, b"a", b"", at_ms=5000)
    driver.advance_to(9000)
    assert finished(driver) == [(b"a", b"3")]
    poison(driver, b"a", 2, at_ms=9000)
    assert driver.quarantined == {}
    with pytest.raises(KeyError):
        driver.release(b"a")


def test_a_row_that_fails_is_rejected_and_its_key_counts_as_failing(drive: Drive) -> None:
    driver = drive(RULED)
    for number in range(3):
        driver.pipe(BEACONS, b"unfinishable", b"", at_ms=1000 * (number + 1))
        driver.advance_to(1000 * (number + 1) + 500)
    assert reasons(driver) == ["fire_failed"] * 3
    assert list(driver.quarantined) == [b"unfinishable"]


def test_failures_far_apart_do_not_add_up(drive: Drive) -> None:
    driver = drive(dataclasses.replace(RULED, failure_rules=RULES.model_copy(update={"quarantine_window_records": 3})))
    for _ in range(5):
        poison(driver, b"a", 1)
        for _ in range(3):
            driver.pipe(BEACONS, b"b", b"", at_ms=1000)
    assert driver.quarantined == {}


class Named(Counting):
    """Keeps rows under longer keys, and a tally of its rows."""

    NAMES = StoreSpec[int](
        name="names",
        id=2,
        encode=msgspec.msgpack.encode,
        decode=msgspec.msgpack.Decoder(int).decode,
        record_key=lambda key: key.partition(b"\x00")[0],
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._names = context.store(self.NAMES)

    def fold(self, record: Record) -> None:
        assert record.key is not None
        if self._counts.get(record.key) is None:
            self._context.tally("open", 1)
        name = record.key + b"\x00" + record.value[:1] if record.value else record.key + b"\x00"
        self._names.put(name, (self._names.get(name) or 0) + 1)
        super().fold(record)

    def release(self, spec: StoreSpec[Any], key: bytes) -> None:
        if spec is COUNTS:
            self._context.tally("open", -1)


NAMED = dataclasses.replace(RULED, stores=(COUNTS, Named.NAMES), start=Named, tallies=("open",))


def test_rows_under_longer_keys_and_tallies_go_and_come_back_with_their_key(drive: Drive) -> None:
    driver = drive(NAMED)
    for key in (b"a", b"a0"):
        for value in (b"x", b"y"):
            driver.pipe(BEACONS, key, value, at_ms=1000)
    poison(driver, b"a", 3)
    assert driver.rows == {"counts": 1, "names": 2}
    assert driver.tallies == {"open": 1}
    driver.release(b"a")
    assert driver.rows == {"counts": 2, "names": 4}
    assert driver.tallies == {"open": 2}


def test_what_a_failed_record_changed_is_undone_alone(drive: Drive) -> None:
    driver = drive(NAMED)
    poison(driver, b"z", 1)
    driver.pipe(BEACONS, b"a", b"x", at_ms=1000)
    poison(driver, b"a", 1)
    driver.pipe(BEACONS, b"a", b"x", at_ms=1000)
    # `names` of "p" was put before the fold raised.
    assert driver.rows == {"counts": 1, "names": 1}
    assert driver.tallies == {"open": 1}
    driver.advance_to(2000)
    assert finished(driver) == [(b"a", b"2")]


def test_the_quarantine_is_bounded_by_keys_and_bytes(drive: Drive) -> None:
    rules = RULES.model_copy(update={"quarantined_keys_max": 2, "quarantined_bytes_max": 10})
    driver = drive(dataclasses.replace(RULED, failure_rules=rules))
    for key in (b"a", b"b", b"c"):
        driver.pipe(BEACONS, key, b"", at_ms=1000)
        poison(driver, key, 5)
    assert list(driver.quarantined) == [b"a", b"b"]
    # The row of the second finds no room and is rejected; of the third key, each record is.
    assert reasons(driver).count("fold_failed") == 3 + 3 + 5
    (row,) = [one for one in driver.outputs(REJECTED) if dict(one.headers)["origin"] == b"counting/0/store counts"]
    assert (row.key, row.value) == (b"b", msgspec.msgpack.encode(1))
    assert [held.rows for held in driver.quarantined.values()] == [1, 0]


def test_what_is_remembered_of_failing_keys_is_bounded() -> None:
    driver = Driver(RULED)
    for number in range(FAILING_KEYS_MAX + 50):
        poison(driver, b"hostile-%d" % number, 1)
    assert len(driver.committed.failing) == FAILING_KEYS_MAX


def test_a_new_version_that_fails_on_many_keys_ends_the_slot_even_across_crashes(drive: Drive) -> None:
    driver = drive(RULED)
    for number in range(20):
        poison(driver, b"before-%d" % number, 1)
    driver.restart_with(dataclasses.replace(RULED, version="2"))
    for number in range(RULES.broken_release_keys):
        poison(driver, b"after-%d" % number, 1)
        poison(driver, b"one", 1)
    assert driver.committed.version == "2"
    rejected = len(driver.outputs(REJECTED))
    with pytest.raises(ReleaseBroken, match=r"failed on 6 keys .* correct it or roll it back"):
        poison(driver, b"after-last", 1)
    assert len(driver.outputs(REJECTED)) == rejected


@pytest.mark.parametrize("rules", [RULES, RULES.model_copy(update={"broken_release_keys": 0})])
def test_long_after_an_upgrade_or_by_a_setting_no_number_of_keys_ends_it(drive: Drive, rules: FailureRules) -> None:
    driver = drive(RULED)
    driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    driver.restart_with(dataclasses.replace(RULED, version="2", failure_rules=rules))
    for _ in range(RULES.broken_release_records if rules is RULES else 0):
        driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    for number in range(20):
        poison(driver, b"hostile-%d" % number, 1)
    assert reasons(driver) == ["fold_failed"] * 20


def test_the_same_records_give_the_same_in_every_weather_and_grouping(drive: Drive) -> None:
    values = [b"", b"poison", b"huge", b"garbage", b"", b"poison"]
    records = [(BEACONS, b"key-%d" % (number * 7 % 11), values[number % 6], 1000 + number) for number in range(200)]

    def outcome(driver: Driver) -> tuple[list[Output], list[Output], dict[bytes, Any]]:
        driver.advance_to(9000)
        rejected = sorted(driver.outputs(REJECTED), key=lambda output: dict(output.headers)["origin"])
        return driver.outputs(VIEWS), rejected, dict(driver.quarantined)

    single, many = drive(RULED), Driver(RULED)
    for topic, key, value, at_ms in records:
        single.pipe(topic, key, value, at_ms=at_ms)
    many.pipe_all(records, commit_every=50)
    assert outcome(single) == outcome(many)
    assert many.quarantined


def test_a_deadline_that_cannot_be_stored_is_the_records_fault() -> None:
    class Endless(Counting):
        def fold(self, record: Record) -> None:
            super().fold(record)
            if record.value == b"endless":
                self._counts.put(record.key or b"", 1, 1 << 60)

    driver = Driver(dataclasses.replace(RULED, start=Endless))
    driver.pipe(BEACONS, b"a", b"endless", at_ms=1000)
    assert reasons(driver) == ["fold_failed"]


def test_a_key_that_cannot_be_put_back_stays_quarantined() -> None:
    driver = Driver(RULED)
    driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    poison(driver, b"a", 3)

    def refuse(_: bytes) -> int:
        raise msgspec.DecodeError("not what was stored")

    spec = dataclasses.replace(COUNTS, decode=refuse)
    driver.restart_with(
        dataclasses.replace(RULED, stores=(spec,), start=type("Refusing", (Counting,), {"SPEC": spec}), version="2")
    )
    with pytest.raises(RuntimeError, match="stays quarantined: DecodeError"):
        driver.release(b"a")
    assert list(driver.quarantined) == [b"a"]


def test_no_application_has_the_store_of_the_engine() -> None:
    with pytest.raises(ValueError, match="engine's own"):
        Application(
            name="wrong",
            inputs=(BEACONS,),
            outputs=(),
            changelog=VIDEO_VIEWS_CHANGELOG,
            stores=(dataclasses.replace(COUNTS, id=254),),
            start=Counting,
        )


def test_a_quarantined_key_survives_a_flush_and_a_takeover() -> None:
    driver = Driver(RULED, flush_every=1)
    driver.pipe(BEACONS, b"a", b"", at_ms=1000)
    poison(driver, b"a", 4)
    driver.restart_with(RULED)
    (held,) = driver.quarantined.values()
    assert (held.rejected, held.rows) == (1, 1)
    driver.release(b"a")
    driver.advance_to(9000)
    assert finished(driver) == [(b"a", b"1")]


def test_a_lower_limit_leaves_the_keys_that_are_quarantined_and_takes_no_more() -> None:
    driver = Driver(RULED)
    for key in (b"a", b"b", b"c"):
        driver.pipe(BEACONS, key, b"", at_ms=1000)
        poison(driver, key, 3)
    driver.restart_with(dataclasses.replace(RULED, failure_rules=RULES.model_copy(update={"quarantined_keys_max": 1})))
    assert list(driver.quarantined) == [b"a", b"b", b"c"]
    poison(driver, b"d", 5)
    driver.pipe(BEACONS, b"c", b"", at_ms=1000)
    assert reasons(driver)[-1] == "quarantined", "no second row beside the one that is kept"
    driver.release(b"c")
    assert list(driver.quarantined) == [b"a", b"b"]


def test_a_core_without_failures_writes_nothing_of_them() -> None:
    core = Core(RULED, 0, MemoryStore())
    core.fold([Record(BEACONS.name, 0, 0, 1000, b"a", b"")])
    assert core.cut().meta.failing == {}
