"""The application: gauges of all partitions meet, and each incident opens, is updated and closes once, in every weather."""

from collections.abc import Callable

import msgspec
import pytest

from services.processor.applications.alerts.app import application
from services.processor.applications.alerts.settings import AlertsSettings
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import codec
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.alerts.rule import SCHEMA_VERSION, AlertRule, AlertRules
from shared.schemas.live import BUCKET_MS, PAIR_SEPARATOR, Live
from shared.topics import ALERT_EVENTS, ALERT_RULES, LIVE, REJECTED
from tests.unit.alerts.live import T0, live, slice_of

ALERTS = application(AlertsSettings())
HIGH = AlertRule(id="high", version=1, name="High", metric="rebuffering", condition="threshold", threshold=0.05)
BY_CDN = AlertRule(
    id="cdn", version=1, name="A CDN", metric="rebuffering", condition="threshold", threshold=0.05, by="cdn"
)
#: These gauges have no beacons.
SILENT = AlertRule(
    id="silent", version=1, name="Silent", metric="beacons", condition="threshold", direction="below", threshold=10
)
Drive = Callable[[Application], Driver]


class Scene:
    """A driver that is given whole buckets, and the events that it emits."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.at_ms = T0

    def rules(self, *rules: AlertRule, version: int = 1) -> None:
        row = AlertRules(schema_version=SCHEMA_VERSION, customer_id="acme", version=version, rules=list(rules))
        self.driver.pipe(ALERT_RULES, b"acme", codec.ALERT_RULES.encode(row), at_ms=self.at_ms)

    def report(self, gauge: Live, after_ms: int = 100) -> None:
        at_ms = gauge.bucket_ms + 5_000 + after_ms
        self.driver.pipe(LIVE, gauge.customer_id.encode(), codec.LIVE.encode(gauge), at_ms=at_ms)

    def bucket(self, rebuffering: int, viewers: int = 400, partitions: int = 2) -> None:
        """The next bucket, in which every partition reports its part."""
        for partition in range(partitions):
            part, of = rebuffering // partitions, viewers // partitions
            slices = {
                "cdn=a": slice_of(viewers_now=of // 2, rebuffering_now=part),
                "cdn=b": slice_of(viewers_now=of // 2, rebuffering_now=0),
            }
            self.report(live(self.at_ms, partition, viewers_now=of, rebuffering_now=part, slices=slices))
        self.at_ms += 5_000

    def buckets(self, number: int, rebuffering: int) -> None:
        for _ in range(number):
            self.bucket(rebuffering)

    @property
    def events(self) -> list[AlertEvent]:
        assert self.driver.outputs(REJECTED) == []
        return [codec.ALERT_EVENT.decode(output.value or b"") for output in self.driver.outputs(ALERT_EVENTS)]

    @property
    def changes(self) -> list[tuple[str, str, int]]:
        return [(one.rule_id, one.change, one.revision) for one in self.events]


@pytest.fixture
def scene(drive: Drive) -> Scene:
    return Scene(drive(ALERTS))


def test_an_incident_opens_and_closes_once(scene: Scene) -> None:
    scene.rules(HIGH)
    scene.buckets(3, 4)
    scene.buckets(10, 40)
    scene.buckets(60, 4)
    assert scene.changes == [("high", "opened", 1), ("high", "closed", 2)]
    opened, closed = scene.events
    assert opened.incident_id == closed.incident_id
    assert (opened.at_ms, opened.affected_max) == (T0 + 4 * 5_000, 40)
    # The last bucket beyond the rule, and three minutes without one.
    assert (closed.last_ms, closed.at_ms, closed.end_reason) == (T0 + 65_000, T0 + 65_000 + 180_000, "recovered")


def test_a_customer_is_judged_by_what_all_partitions_counted(scene: Scene) -> None:
    scene.rules(HIGH)
    # Of partition 1 alone it would be 20 %, of all it is 2 %.
    for number in range(4):
        start_ms = T0 + number * 5_000
        scene.report(live(start_ms, 0, viewers_now=900, rebuffering_now=0))
        scene.report(live(start_ms, 1, viewers_now=100, rebuffering_now=20))
    assert scene.events == []


def test_flapping_is_one_incident(scene: Scene) -> None:
    scene.rules(HIGH)
    for _ in range(5):
        scene.buckets(2, 40)
        scene.buckets(20, 4)
    scene.buckets(40, 4)
    assert [change for _, change, _ in scene.changes] == ["opened", "closed"]


def test_a_rule_that_finds_many_slices_has_one_incident_with_its_slices_and_suspects(scene: Scene) -> None:
    scene.rules(HIGH, BY_CDN)
    scene.buckets(2, 40)
    by_cdn = next(one for one in scene.events if one.rule_id == "cdn")
    assert [one.slice for one in by_cdn.slices] == [{"cdn": "a"}]
    high = next(one for one in scene.events if one.rule_id == "high")
    assert [(one.slice, round(one.share, 2)) for one in high.suspects] == [({"cdn": "a"}, 0.5)]
    assert high.suspects[0].explains > 1
    # The viewers of a moment, not of all buckets together.
    (whole,) = high.slices
    assert high.suspects[0].of_all == whole.of * BUCKET_MS // (1_000 * whole.seconds)


def test_a_slice_that_joins_later_is_an_update(scene: Scene) -> None:
    scene.rules(BY_CDN)
    scene.buckets(2, 40)
    for _ in range(20):
        slices = {name: slice_of(viewers_now=200, rebuffering_now=30) for name in ("cdn=a", "cdn=b")}
        for partition in range(2):
            scene.report(live(scene.at_ms, partition, viewers_now=400, rebuffering_now=60, slices=slices))
        scene.at_ms += 5_000
    assert scene.changes == [("cdn", "opened", 1), ("cdn", "updated", 2)]
    assert {one.slice["cdn"] for one in scene.events[-1].slices} == {"a", "b"}


def test_it_must_last_for_as_long_as_the_rule_says(scene: Scene) -> None:
    scene.rules(AlertRule(id="long", version=1, name="L", metric="rebuffering", condition="threshold",
                          threshold=0.05, for_seconds=120))  # fmt: skip
    scene.buckets(23, 40)
    assert scene.events == []
    scene.buckets(2, 40)
    assert scene.changes == [("long", "opened", 1)]


def test_few_viewers_are_not_judged(scene: Scene) -> None:
    scene.rules(HIGH)
    for _ in range(5):
        scene.bucket(20, viewers=40)
    assert scene.events == []


def test_a_changed_rule_is_in_force_from_then_on_and_an_old_version_is_passed_over(scene: Scene) -> None:
    scene.rules(HIGH, version=2)
    scene.buckets(2, 40)
    scene.rules(version=1)
    scene.buckets(1, 40)
    assert scene.changes == [("high", "opened", 1)]
    scene.rules(version=3)
    scene.buckets(1, 40)
    assert scene.changes == [("high", "opened", 1), ("high", "closed", 2)]
    assert scene.events[-1].end_reason == "rule_changed"


@pytest.mark.parametrize(
    "left",
    [
        (),
        (msgspec.structs.replace(SILENT, is_enabled=False),),
        (msgspec.structs.replace(SILENT, metric="views_started"),),
    ],
    ids=["deleted", "off", "measures something else"],
)
def test_the_incident_of_a_silent_customer_closes_with_its_rule(scene: Scene, left: tuple[AlertRule, ...]) -> None:
    scene.rules(SILENT)
    scene.buckets(3, 4)
    assert scene.changes == [("silent", "opened", 1)]
    # No partition reports the customer any more: no bucket comes that could be judged.
    scene.driver.advance_to(scene.at_ms + 3_600_000)
    scene.rules(msgspec.structs.replace(SILENT, version=2, name="Renamed"), version=2)
    assert scene.changes == [("silent", "opened", 1)]
    scene.rules(*left, version=3)
    assert scene.changes == [("silent", "opened", 1), ("silent", "closed", 2)]
    assert (scene.events[-1].at_ms, scene.events[-1].end_reason) == (scene.driver.clock_ms, "rule_changed")
    assert scene.driver.tallies["open_incidents"] == 0


def test_a_bucket_waits_for_a_partition_that_reported_before_but_not_for_ever(scene: Scene) -> None:
    scene.rules(HIGH)
    scene.buckets(1, 4)
    scene.driver.advance_to(T0 + 10_100)
    scene.report(live(T0 + 5_000, 0, viewers_now=200, rebuffering_now=40))
    scene.driver.advance_to(T0 + 5_000 + 5_000 + 100 + 4_999)
    assert scene.events == []
    scene.driver.advance_to(T0 + 5_000 + 5_000 + 100 + 5_000)
    assert scene.changes == [("high", "opened", 1)]
    # It comes too late: the bucket is closed, and does not count again.
    scene.report(live(T0 + 5_000, 1, viewers_now=200, rebuffering_now=40), after_ms=9_000)
    assert scene.driver.tallies == {"open_incidents": 1, "late_gauges": 1}


def test_gauges_of_an_earlier_release_are_by_partition_and_passed_over(scene: Scene) -> None:
    scene.rules(HIGH)
    gauge = live(T0, 0, viewers_now=200, rebuffering_now=40)
    scene.driver.pipe(LIVE, f"0:acme:{T0}".encode(), codec.LIVE.encode(gauge), at_ms=T0 + 5_100)
    scene.driver.advance_to(T0 + 60_000)
    assert scene.events == []
    assert scene.driver.outputs(REJECTED) == []


def test_the_same_gauges_give_the_same_incidents_however_they_are_committed(drive: Drive) -> None:
    """A replay: other batches, the same events, with the same ids."""
    piped = Scene(drive(ALERTS))
    piped.rules(HIGH, BY_CDN)
    piped.buckets(3, 4)
    piped.buckets(14, 40)
    piped.buckets(50, 4)
    records = [(LIVE, b"acme", codec.LIVE.encode(one), one.bucket_ms + 5_100) for one in _gauges()]
    replayed = Scene(Driver(ALERTS))
    replayed.rules(HIGH, BY_CDN)
    replayed.driver.pipe_all(records, commit_every=37)
    assert replayed.events == piped.events
    assert len(replayed.events) == 4


def _gauges() -> list[Live]:
    recorder = Scene(Driver(ALERTS))
    found: list[Live] = []
    recorder.report = lambda gauge, after_ms=100: found.append(gauge)  # type: ignore[method-assign]
    recorder.buckets(3, 4)
    recorder.buckets(14, 40)
    recorder.buckets(50, 4)
    return found


def test_a_rule_of_a_pair_judges_the_slices_of_that_pair(scene: Scene) -> None:
    by_country = AlertRule(id="pair", version=1, name="P", metric="rebuffering", condition="threshold",
                           threshold=0.05, filter={"cdn": "a"}, by="country")  # fmt: skip
    scene.rules(by_country)
    for _ in range(3):
        slices = {
            f"cdn,country=a{PAIR_SEPARATOR}DE": slice_of(viewers_now=100, rebuffering_now=30),
            f"cdn,country=a{PAIR_SEPARATOR}FR": slice_of(viewers_now=100, rebuffering_now=1),
            f"cdn,country=b{PAIR_SEPARATOR}DE": slice_of(viewers_now=100, rebuffering_now=30),
            "cdn=a": slice_of(viewers_now=200, rebuffering_now=31),
        }
        for partition in range(2):
            scene.report(live(scene.at_ms, partition, viewers_now=300, rebuffering_now=61, slices=slices))
        scene.at_ms += 5_000
    (opened,) = scene.events
    assert [one.slice for one in opened.slices] == [{"cdn": "a", "country": "DE"}]
