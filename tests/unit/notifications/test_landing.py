"""The member of the group that lands changes of incidents."""

from typing import Any

import pytest

from services.notifications import landing
from services.notifications.settings import NotificationsSettings
from services.rim.database.pool import Postgres


def test_the_group_gives_the_partitions_of_a_killed_process_to_another_when_its_session_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(landing, "Consumer", given.update)
    postgres = Postgres("postgresql://x/y", service="test", connections_max=1, seconds_max=1)
    settings = NotificationsSettings(postgres_dsn="postgresql://x/y", session_ms=6_000)

    landing.Landing(settings, postgres, lambda: None)

    assert (given["session.timeout.ms"], given["heartbeat.interval.ms"]) == (6_000, 1_200)
