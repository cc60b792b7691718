"""The member of the group that lands changes of incidents."""

import threading
from collections.abc import Sequence
from typing import Any, cast

import psycopg
import pytest

from services.notifications import landing
from services.notifications.settings import NotificationsSettings
from services.rim.database.pool import Postgres, QueryRefused
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
