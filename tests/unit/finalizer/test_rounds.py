"""Maintenance is due by the time since the last round, however short processes live; what was cut off is not done."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from services.finalizer.jobs.maintenance import Maintenance
from services.finalizer.jobs.rounds import Rounds
from services.finalizer.settings import FinalizerSettings
from services.finalizer.warehouse import tables

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SPARK: Any = None
FOLDERS = {f"FINALIZER_{name}_DIR": "x" for name in ("WAREHOUSE", "CHECKPOINT", "JARS")}
SETTINGS = FinalizerSettings.load({"FINALIZER_POSTGRES_DSN": "", **FOLDERS})


class Served:
    """The serving database, which outlives processes."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}
        self.expired = 0

    def maintained(self, names: Sequence[str], *, now_ms: int) -> dict[str, int]:
        return {name: self.times.setdefault(name, now_ms) for name in names}

    def note_maintained(self, name: str, at_ms: int) -> None:
        self.times[name] = at_ms

    def expire(self, **_: object) -> None:
        self.expired += 1


class Installation:
    """Processes one after the other, on a clock of the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = DAY_MS
        self.served: Any = Served()
        self.kept: list[str] = []
        self.stop = threading.Event()
        self.stops_after: str | None = None
        monkeypatch.setattr(Maintenance, "_keep", self._keep)

    def process(self) -> Maintenance:
        kept = (tables.VIEWS, tables.ROLLUPS)
        rounds = Rounds(self.served, 3_600, lambda: self.now_ms)
        made = Maintenance.of(SETTINGS, kept, lambda: self.now_ms, self.stop, serving=self.served, rounds=rounds)
        made._own = None
        return made

    def done(self) -> list[str]:
        done, self.kept = self.kept, []
        return done

    def _keep(self, spark: object, table: tables.Table, *_: object) -> None:
        self.kept.append(table.name)
        if table.name == self.stops_after:
            self.stop.set()


@pytest.fixture
def installation(monkeypatch: pytest.MonkeyPatch) -> Installation:
    return Installation(monkeypatch)


def test_processes_that_live_for_less_than_an_interval_have_rounds(installation: Installation) -> None:
    # The first one begins the interval: there is nothing to maintain yet.
    assert not installation.process().run_if_due(SPARK)
    done = []
    for _ in range(5):
        installation.now_ms += HOUR_MS // 2
        process = installation.process()
        was_due = process.run_if_due(SPARK)
        assert not process.run_if_due(SPARK)
        done.append(installation.done())
        assert was_due == bool(done[-1])
    assert done == [[], ["views", "rollups"], [], ["views", "rollups"], []]
    assert installation.served.expired == 2


def test_a_time_that_lies_ahead_holds_no_round_up(installation: Installation) -> None:
    assert not installation.process().run_if_due(SPARK)
    installation.now_ms -= 100 * DAY_MS
    assert installation.process().run_if_due(SPARK)
    assert not installation.process().run_if_due(SPARK)


def test_a_round_that_is_cut_off_goes_on_in_the_next_process(installation: Installation) -> None:
    assert not installation.process().run_if_due(SPARK)
    installation.now_ms += HOUR_MS
    installation.stops_after = "views"
    assert installation.process().run_if_due(SPARK)
    assert (installation.done(), installation.served.expired) == (["views"], 0)
    installation.stop = threading.Event()
    assert installation.process().run_if_due(SPARK)
    assert (installation.done(), installation.served.expired) == (["rollups"], 1)


def test_streams_that_have_ended_by_themselves_have_a_whole_round(installation: Installation) -> None:
    assert not installation.process().run_if_due(SPARK)
    installation.now_ms += HOUR_MS
    installation.stop.set()
    assert installation.process().run_if_due(SPARK, although_stopping=True)
    assert (installation.done(), installation.served.expired) == (["views", "rollups"], 1)


def test_what_customers_have_set_is_seen_to_on_the_same_day_once_it_is_known(installation: Installation) -> None:
    seen: list[dict[str, dict[str, int]]] = []
    known: dict[str, dict[str, int]] | None = None

    class Own:
        def days(self) -> dict[str, dict[str, int]] | None:
            return known

        def expire_served(self, serving: object, days: dict[str, dict[str, int]], now_ms: int) -> None:
            seen.append(days)

    process: Any = installation.process()
    process._own = Own()
    process.run(SPARK)
    assert seen == []
    known = {"views": {"acme": 30}}
    process.run(SPARK)
    process.run(SPARK)
    assert seen == [known]
