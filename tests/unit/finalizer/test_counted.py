"""What is counted of records that cannot be read, and of tables that are not maintained, has its series before the first."""

import threading
from typing import Any

import pytest
from prometheus_client import REGISTRY

from services.finalizer.jobs.maintenance import Maintenance, Retention
from services.finalizer.row_topics import ALL
from services.finalizer.streaming.landing import Landing
from services.finalizer.streaming.rows import RowLanding
from services.finalizer.warehouse import tables
from services.rim.process.crash_points import CrashPoints
from services.rim.telemetry.metrics import counter
from shared.metrics import FINALIZER_UNPARSED

UNPARSED = "playhead_finalizer_unparsed_total"
UNREADABLE = ["undecodable", "unknown_version", "invalid"]


@pytest.fixture(autouse=True)
def no_series() -> None:
    """As at the start of a process."""
    counter(FINALIZER_UNPARSED).clear()


def unparsed() -> dict[str, float | None]:
    return {reason: REGISTRY.get_sample_value(UNPARSED, {"reason": reason}) for reason in UNREADABLE}


def test_of_topic_views() -> None:
    serving: Any = None
    Landing("", serving, bytes_max=1, clock_ms=lambda: 0, crash_points=CrashPoints())
    assert unparsed() == dict.fromkeys(UNREADABLE, 0)


def test_of_an_applications_topic() -> None:
    RowLanding("", ALL[0], clock_ms=lambda: 0, crash_points=CrashPoints())
    assert unparsed() == dict.fromkeys(UNREADABLE, 0)


def test_of_a_table() -> None:
    retention = Retention(days={}, minutes_days=0, recent_days=1)
    Maintenance("", [tables.BRONZE], retention, vacuum_hours=1, clock_ms=lambda: 0, stop=threading.Event())
    assert REGISTRY.get_sample_value("playhead_finalizer_maintenance_failures_total", {"table": "bronze"}) == 0
