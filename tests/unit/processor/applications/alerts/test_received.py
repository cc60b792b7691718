"""What collectors reject of a customer is judged by collector and by release, beside and without its views, in every weather."""

from collections.abc import Callable, Mapping

import pytest

from services.processor.applications.alerts.app import application
from services.processor.applications.alerts.settings import AlertsSettings
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import codec
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.alerts.rule import SCHEMA_VERSION as RULES_VERSION
from shared.schemas.alerts.rule import AlertRule, AlertRules
from shared.schemas.received import SCHEMA_VERSION, Received, ReceivedCount
from shared.topics import ALERT_EVENTS, ALERT_RULES, RECEIVED, REJECTED
from tests.unit.alerts.live import T0

ALERTS = application(AlertsSettings())
Drive = Callable[[Application], Driver]
HIGH = AlertRule(id="high", version=1, name="H", metric="rejected", condition="threshold", threshold=0.05)
BY_RELEASE = AlertRule(
    id="release", version=1, name="R", metric="rejected", condition="threshold", threshold=0.05, by="release"
)
BY_COLLECTOR = AlertRule(
    id="collector", version=1, name="C", metric="rejected", condition="threshold", threshold=0.05, by="collector"
)
RISING = AlertRule(
    id="rising", version=1, name="U", metric="rejected", condition="anomaly", ratio=3, threshold=0.01, by="release"
)
#: Release to received and rejected.
CALM: Mapping[str, tuple[int, int]] = {"1.0": (300, 1), "2.0": (100, 0)}
BROKEN: Mapping[str, tuple[int, int]] = {"1.0": (300, 1), "2.0": (100, 40)}


class Scene:
    """A driver that is given what two collectors received, and the events that it emits."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.at_ms = T0

    def rules(self, *rules: AlertRule) -> None:
        row = AlertRules(schema_version=RULES_VERSION, customer_id="acme", version=1, rules=list(rules))
        self.driver.pipe(ALERT_RULES, b"acme", codec.ALERT_RULES.encode(row), at_ms=self.at_ms)

    def report(self, collector: int, releases: Mapping[str, tuple[int, int]], *, after_ms: int = 100) -> None:
        received, rejected = (sum(one[at] for one in releases.values()) for at in (0, 1))
        one = Received(
            schema_version=SCHEMA_VERSION,
            customer_id="acme",
            collector=f"c-{collector}",
            process=collector,
            bucket_ms=self.at_ms,
            received=received,
            rejected=rejected,
            releases={name: ReceivedCount(*counts) for name, counts in releases.items()},
        )
        self.driver.pipe(RECEIVED, b"acme", codec.RECEIVED.encode(one), at_ms=self.at_ms + 5_000 + after_ms)

    def buckets(
        self, number: int, first: Mapping[str, tuple[int, int]], second: Mapping[str, tuple[int, int]] = CALM
    ) -> None:
        for _ in range(number):
            self.report(1, first)
            self.report(2, second)
            self.at_ms += 5_000

    @property
    def events(self) -> list[AlertEvent]:
        assert self.driver.outputs(REJECTED) == []
        return [codec.ALERT_EVENT.decode(output.value or b"") for output in self.driver.outputs(ALERT_EVENTS)]

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(one.rule_id, one.change) for one in self.events]


@pytest.fixture
def scene(drive: Drive) -> Scene:
    return Scene(drive(ALERTS))


def test_a_release_whose_beacons_are_rejected_is_an_incident_that_names_it(scene: Scene) -> None:
    scene.rules(BY_RELEASE, BY_COLLECTOR)
    scene.buckets(3, CALM)
    scene.buckets(4, BROKEN, BROKEN)
    scene.buckets(45, CALM)
    by_release = [one for one in scene.events if one.rule_id == "release"]
    assert [one.change for one in by_release] == ["opened", "closed"]
    (slice_,) = by_release[0].slices
    assert (slice_.slice, slice_.hits, slice_.of) == ({"release": "2.0"}, 80, 200)
    assert [one.slice for one in by_release[0].suspects] == [{"release": "2.0"}]
    # Each collector rejects 41 of 400.
    (opened, _) = [one for one in scene.events if one.rule_id == "collector"]
    assert {one.slice["collector"] for one in opened.slices} == {"c-1", "c-2"}


def test_one_collector_that_rejects_what_the_other_takes_is_named(scene: Scene) -> None:
    scene.rules(BY_COLLECTOR)
    scene.buckets(3, CALM)
    scene.buckets(2, {"1.0": (300, 60), "2.0": (100, 20)})
    (opened,) = scene.events
    assert [one.slice for one in opened.slices] == [{"collector": "c-1"}]
    assert opened.affected_max == 80


def test_a_customer_is_judged_by_what_all_collectors_received(scene: Scene) -> None:
    scene.rules(HIGH)
    # Of the first alone it would be 20 %, of both it is 2 %.
    scene.buckets(5, {"1.0": (100, 20)}, {"1.0": (900, 0)})
    assert scene.events == []


@pytest.mark.thorough
def test_what_rises_above_what_is_usual_is_found_once_it_is_more_than_the_least(scene: Scene) -> None:
    scene.rules(RISING)
    scene.buckets(2 * 720, CALM)
    # Many times the usual share, and less than one in a hundred.
    scene.buckets(24, {"1.0": (3_000, 10), "2.0": (1_000, 7)})
    assert scene.events == []
    scene.buckets(12, BROKEN)
    (opened,) = scene.events
    assert [one.slice for one in opened.slices] == [{"release": "2.0"}]
    assert opened.slices[0].probability is not None


def test_a_customer_all_of_whose_beacons_are_rejected_has_an_incident_without_any_view(scene: Scene) -> None:
    scene.rules(HIGH)
    scene.buckets(2, {"1.0": (300, 300)}, {})
    assert scene.changes == [("high", "opened")]


def test_an_incident_is_over_when_nothing_is_received_any_more(scene: Scene) -> None:
    scene.rules(HIGH)
    scene.buckets(2, {"1.0": (300, 300)}, {})
    # The collectors are gone, and no bucket comes that could be judged.
    scene.driver.advance_to(scene.at_ms + 20 * 60_000)
    assert scene.changes == [("high", "opened"), ("high", "closed")]
    assert scene.events[-1].end_reason == "recovered"
    assert scene.driver.tallies["open_incidents"] == 0


def test_a_rule_that_is_changed_to_another_topics_metric_closes_its_incident(scene: Scene) -> None:
    scene.rules(HIGH)
    scene.buckets(2, {"1.0": (300, 300)}, {})
    other = AlertRule(id="high", version=2, name="H", metric="rebuffering", condition="threshold", threshold=0.05)
    row = AlertRules(schema_version=RULES_VERSION, customer_id="acme", version=2, rules=[other])
    scene.driver.pipe(ALERT_RULES, b"acme", codec.ALERT_RULES.encode(row), at_ms=scene.at_ms)
    # At once: collectors may have nothing more to report.
    assert scene.changes == [("high", "opened"), ("high", "closed")]
    assert scene.events[-1].end_reason == "rule_changed"


def test_a_release_in_force_no_more_than_a_few_beacons_is_not_judged(scene: Scene) -> None:
    scene.rules(BY_RELEASE)
    scene.buckets(5, {"1.0": (300, 0), "3.0": (20, 20)}, {})
    assert scene.events == []


def test_a_report_under_another_key_is_rejected(drive: Drive) -> None:
    driver = drive(ALERTS)
    one = Received(
        schema_version=SCHEMA_VERSION, customer_id="acme", collector="c", process=1, bucket_ms=T0, received=1, rejected=1
    )  # fmt: skip
    driver.pipe(RECEIVED, b"other", codec.RECEIVED.encode(one), at_ms=T0 + 5_100)
    assert len(driver.outputs(REJECTED)) == 1
