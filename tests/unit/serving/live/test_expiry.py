"""The thread that lands live minutes, without Kafka and Postgres."""

from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from services.serving.live.landing import LiveLanding
from services.serving.settings import ServingSettings


class Slow:
    """A database whose expiry is cancelled as often as it is tried."""

    def __init__(self) -> None:
        self.tries = 0

    def expire(self, **_: int) -> int:
        self.tries += 1
        raise psycopg.errors.QueryCanceled


def test_an_expiry_that_is_cancelled_drops_nothing_and_is_not_tried_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = ServingSettings.load({"SERVING_POSTGRES_DSN": "postgresql://u@db"})
    database: Any = Slow()
    landing = LiveLanding(settings, database, {}, now_ms=lambda: 0, on_death=lambda _: None)
    clock = SimpleNamespace(monotonic=lambda: 1_000.0)
    monkeypatch.setattr("services.serving.live.landing.time", clock)

    # What it raised would end the following, with all that waits.
    landing._expire(has_caught_up=True)
    landing._expire(has_caught_up=True)

    assert database.tries == 1
    clock.monotonic = lambda: 2_000.0
    landing._expire(has_caught_up=True)
    assert database.tries == 2
