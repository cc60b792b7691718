"""The member of the group that lands changes of incidents."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, cast

import psycopg
import pytest

from services.notifications import landing
from services.notifications.settings import NotificationsSettings
from services.rim.database.pool import Postgres, PostgresAway, QueryRefused
from services.rim.telemetry.metrics import counter
from shared.metrics import NOTIFICATIONS_CHANGES
from shared.schemas.alerts.event import AlertEvent
from tests.unit.alerts.events import event


def test_the_group_gives_the_partitions_of_a_killed_process_to_another_when_its_session_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(landing, "Consumer", given.update)
    postgres = Postgres("postgresql://x/y", service="test", connections_max=1, seconds_max=1)
    settings = NotificationsSettings(postgres_dsn="postgresql://x/y", session_ms=6_000)

    landing.Landing(settings, postgres, lambda: None)

    assert (given["session.timeout.ms"], given["heartbeat.interval.ms"]) == (6_000, 1_200)


async def test_a_change_that_postgres_refuses_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing, "Consumer", lambda _: None)
    landed: list[str] = []

    async def land_all(_: Any, events: Sequence[AlertEvent]) -> int:
        names = [one.incident_id for one in events]
        if "refused" in names:
            raise QueryRefused("UntranslatableCharacter") from psycopg.errors.UntranslatableCharacter()
        landed.extend(names)
        return len(names)

    class Stand:
        async def ask(self, work: Any) -> int:
            count: int = await work(None)
            return count

    monkeypatch.setattr(landing, "_land_all", land_all)
    settings = NotificationsSettings(postgres_dsn="postgresql://x/y")
    one = landing.Landing(settings, cast(Postgres, Stand()), lambda: None)
    before = counter(NOTIFICATIONS_CHANGES).labels("refused")._value.get()

    await one._land([event(incident_id=name) for name in ("a", "refused", "b")], threading.Event())

    assert landed == ["a", "b"]
    assert counter(NOTIFICATIONS_CHANGES).labels("refused")._value.get() == before + 1


async def test_tables_of_another_version_end_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing, "Consumer", lambda _: None)

    class Stand:
        async def ask(self, _: Any) -> int:
            raise QueryRefused("UndefinedColumn") from psycopg.errors.UndefinedColumn()

    settings = NotificationsSettings(postgres_dsn="postgresql://x/y")
    one = landing.Landing(settings, cast(Postgres, Stand()), lambda: None)
    with pytest.raises(QueryRefused):
        await one._land([event(), event()], threading.Event())


async def test_changes_that_are_too_many_for_the_time_of_a_question_are_landed_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same hundred were asked again for ever."""
    monkeypatch.setattr(landing, "Consumer", lambda _: None)
    monkeypatch.setattr(landing, "_AWAY_SECONDS", 0)
    landed: list[str] = []

    class Slow:
        async def ask(self, work: Any) -> int:
            events: Sequence[AlertEvent] = work.keywords["events"]
            if len(events) > 10:
                raise PostgresAway("deadline")
            landed.extend(one.incident_id for one in events)
            return len(events)

    settings = NotificationsSettings(postgres_dsn="postgresql://x/y")
    one = landing.Landing(settings, cast(Postgres, Slow()), lambda: None)
    names = [f"{number}" for number in range(100)]
    attempts = asyncio.create_task(one._land([event(incident_id=name) for name in names], stop := threading.Event()))
    try:
        # More turns of the loop than halving needs.
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert landed == names
    finally:
        stop.set()
        await attempts
