"""A customer is deleted: its rules, open incidents and what was learned go, and no event says so."""

from collections.abc import Callable

import pytest

from services.processor.applications.alerts.app import application
from services.processor.applications.alerts.settings import AlertsSettings
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import codec
from shared.schemas.received import Received
from shared.topics import ALERT_RULES, RECEIVED
from tests.unit.processor.applications.alerts.test_alerts import HIGH, Scene

Drive = Callable[[Application], Driver]
ALERTS = application(AlertsSettings())


@pytest.fixture
def scene(drive: Drive) -> Scene:
    return Scene(drive(ALERTS))


def forget(scene: Scene) -> None:
    scene.driver.pipe(ALERT_RULES, b"acme", None, at_ms=scene.at_ms + 5_000)


def test_rules_open_incidents_and_what_was_learned_go_without_an_event(scene: Scene) -> None:
    scene.rules(HIGH)
    scene.buckets(64, 4)
    # What was usual is noted at an hour's end.
    scene.at_ms += 3_600_000
    scene.buckets(20, 4)
    scene.buckets(3, 80)
    assert scene.changes == [("high", "opened", 1)]
    assert scene.driver.tallies["open_incidents"] == 1
    assert scene.driver.rows["seasons"]
    forget(scene)
    assert not any(scene.driver.rows.values())
    assert scene.driver.tallies["open_incidents"] == 0
    scene.driver.advance_to(scene.at_ms + 100 * 86_400_000)
    assert scene.changes == [("high", "opened", 1)]


def test_what_partitions_still_say_of_nobody_leaves_nothing(scene: Scene) -> None:
    scene.rules(HIGH)
    scene.buckets(3, 4)
    forget(scene)
    for _ in range(5):
        scene.bucket(0, viewers=0)
    assert not any(scene.driver.rows.values())


def test_what_collectors_still_say_of_nobody_leaves_nothing(scene: Scene) -> None:
    def report(count: int) -> None:
        received = Received(
            schema_version=1, customer_id="acme", collector="c", process=1, bucket_ms=scene.at_ms, received=count, rejected=0,
        )  # fmt: skip
        scene.driver.pipe(RECEIVED, b"acme", codec.RECEIVED.encode(received), at_ms=scene.at_ms + 5_100)
        scene.at_ms += 5_000

    for _ in range(3):
        report(7)
    assert scene.driver.rows["environments"] == 1
    forget(scene)
    assert not any(scene.driver.rows.values())
    scene.at_ms += 5_000
    for _ in range(3):
        report(0)
    assert not any(scene.driver.rows.values())


def test_rules_and_gauges_that_come_later_are_those_of_a_new_customer(scene: Scene) -> None:
    scene.rules(HIGH, version=7)
    scene.buckets(3, 4)
    forget(scene)
    scene.at_ms += 10_000
    scene.rules(HIGH, version=1)
    scene.buckets(3, 80)
    assert scene.changes == [("high", "opened", 1)]
