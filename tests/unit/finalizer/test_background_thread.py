"""What follows from batches is done on a thread of its own, a piece at a time, and its death is seen."""

import math
import threading
from typing import Any

import pytest

from deploy.local.process import wait_until
from services.finalizer.health import Health
from services.finalizer.jobs.background_thread import BackgroundThread

SECONDS_MAX = 30.0


class Landing:
    """Has so many pieces to count, and fails at the last if it is to."""

    def __init__(self, pieces: int, error: Exception | None = None) -> None:
        self.pieces = pieces
        self.error = error
        self.counted = 0
        self.looks = 0

    def rebuild_some(self, spark: Any, why: str) -> int:
        assert why == "upkeep"
        self.looks += 1
        if not self.pieces:
            return 0
        if self.pieces == 1 and self.error is not None:
            raise self.error
        self.pieces -= 1
        self.counted += 1
        return 7


class Round:
    """Maintenance that counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def run_if_due(self, spark: Any) -> bool:
        self.asked += 1
        return False


def background(
    landing: Landing, stop: threading.Event, *rounds: Round, every_seconds: float = 0.01
) -> BackgroundThread:
    spark: Any = None
    of_views: Any = landing
    maintained: Any = rounds
    return BackgroundThread(spark, of_views, maintained, every_seconds=every_seconds, stop=stop)


def test_all_pieces_are_counted_in_each_round_and_tables_are_maintained_between_rounds() -> None:
    landing, maintenance, stop = Landing(3), Round(), threading.Event()
    running = background(landing, stop, maintenance)
    running.start()
    wait_until(lambda: landing.counted == 3 and maintenance.asked > 1, SECONDS_MAX, "the first round is done")
    landing.pieces = 2
    wait_until(lambda: landing.counted == 5, SECONDS_MAX, "a later round counts what came since")
    stop.set()
    running.join(SECONDS_MAX)
    running.watch()
    assert running.progress.overdue(math.inf) is None


def test_a_round_waits_for_its_time() -> None:
    landing, maintenance, stop = Landing(1), Round(), threading.Event()
    running = background(landing, stop, maintenance, every_seconds=3_600)
    running.start()
    wait_until(lambda: maintenance.asked > 3, SECONDS_MAX, "it has gone round several times")
    stop.set()
    running.join(SECONDS_MAX)
    assert (landing.counted, landing.looks) == (1, 2)


def test_what_it_died_of_is_raised_where_streams_are_watched_and_the_process_is_not_ready() -> None:
    landing, stop = Landing(2, RuntimeError("no space")), threading.Event()
    running = background(landing, stop)
    health = Health()
    health.watch([running])
    assert health.ready().ok
    running.start()
    running.join(SECONDS_MAX)
    assert landing.counted == 1
    with pytest.raises(RuntimeError, match="no space"):
        running.watch()
    assert health.ready().why == "upkeep: RuntimeError"
