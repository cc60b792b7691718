"""A piece of work that hangs is seen; one that waits for others, or comes on, is left alone."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from deploy.local.process import wait_until
from services.finalizer.health import Health, Working
from services.finalizer.jobs.background_thread import BackgroundThread
from services.finalizer.progress import PIECE_SECONDS_MAX, TABLE_SECONDS_MAX, Progress, Turn, step
from services.finalizer.streaming.batches import Batches
from services.finalizer.warehouse import recorded_objects
from services.finalizer.warehouse.recorded_objects import delete_named

SECONDS_MAX = 30.0
LATER_SECONDS = 10 * TABLE_SECONDS_MAX


def alive_later(working: Working, seconds: float = LATER_SECONDS) -> bool:
    """What `/livez` says after that time, if nothing comes on."""
    health = Health(lambda: time.monotonic() + seconds)
    health.watch([working])
    return health.alive().ok


@contextmanager
def running(batches: Batches, ends: threading.Event) -> Iterator[None]:
    batch: Any = None
    thread = threading.Thread(target=batches, args=(batch, 0))
    thread.start()
    yield
    ends.set()
    thread.join(SECONDS_MAX)


def test_a_batch_that_waits_for_its_turn_does_not_hang_and_one_that_has_it_may() -> None:
    turn, goes_on = Turn(), threading.Event()
    begun, has_it = threading.Event(), threading.Event()

    def work(_: DataFrame, batch_id: int) -> int:
        begun.set()
        with turn:
            has_it.set()
            goes_on.wait(SECONDS_MAX)
        return 1

    batches = Batches("views", work, threading.Event(), turns=[turn])
    assert alive_later(batches)
    another = ExitStack()
    another.enter_context(turn)
    with another, running(batches, goes_on):
        assert begun.wait(SECONDS_MAX)
        wait_until(lambda: alive_later(batches), SECONDS_MAX, "it waits, for as long as the other takes")
        another.close()
        assert has_it.wait(SECONDS_MAX)
        wait_until(lambda: not alive_later(batches), SECONDS_MAX, "it has its turn, and hangs")
        assert alive_later(batches, PIECE_SECONDS_MAX - SECONDS_MAX)
        goes_on.set()
        wait_until(lambda: alive_later(batches), SECONDS_MAX, "it has ended")


class Nothing:
    """Counts nothing."""

    def rebuild_some(self, spark: Any, why: str) -> int:
        return 0


def test_a_deletion_that_hangs_is_seen_and_one_that_reads_a_whole_table_has_longer() -> None:
    has_begun, reads, goes_on, stop = (threading.Event() for _ in range(4))

    def also() -> None:
        has_begun.set()
        assert reads.wait(SECONDS_MAX)
        step()
        has_begun.clear()
        assert goes_on.wait(SECONDS_MAX)

    nothing: Any = Nothing()
    background = BackgroundThread(nothing, nothing, [], every_seconds=3_600, stop=stop, also=also)
    background.start()
    assert has_begun.wait(SECONDS_MAX)
    assert not alive_later(background, PIECE_SECONDS_MAX)
    reads.set()
    wait_until(lambda: not has_begun.is_set(), SECONDS_MAX, "it reads the table")
    assert alive_later(background, PIECE_SECONDS_MAX)
    assert not alive_later(background, TABLE_SECONDS_MAX)
    stop.set()
    goes_on.set()
    background.join(SECONDS_MAX)
    background.watch()
    assert alive_later(background)


def test_objects_are_deleted_many_at_once_each_time_a_step_although_some_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    monkeypatch.setattr(recorded_objects, "_DELETED_AT_ONCE", 10)
    monkeypatch.setattr(recorded_objects, "step", lambda: steps.append(len(list(tmp_path.iterdir()))))
    names = [f"object-{number:02}" for number in range(30)]
    for name in [*names[:3], *names[5:], "another"]:
        (tmp_path / name).touch()
    delete_named(str(tmp_path), names)
    assert steps == [29, 21, 11]
    assert [path.name for path in tmp_path.iterdir()] == ["another"]


def test_outside_of_watched_threads_a_step_and_a_turn_are_nobodys_progress() -> None:
    progress = Progress()
    step()
    with Turn():
        assert progress.overdue(time.monotonic() + LATER_SECONDS) is None
    with progress.working():
        assert progress.overdue(time.monotonic() + LATER_SECONDS) == PIECE_SECONDS_MAX
    assert progress.overdue(time.monotonic() + LATER_SECONDS) is None
