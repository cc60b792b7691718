"""Requests to delete data hold up nothing else: neither each other, nor the streams."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from services.accounts.core.deletions import STEPS, Step
from services.finalizer.jobs.deletions import steps
from services.finalizer.jobs.deletions.steps import Deletions
from services.finalizer.serving.deletion_requests import Work
from services.rim.process.crash_points import CrashPoints

FAILURES = (
    lambda: Py4JJavaError("no space left", SimpleNamespace(_target_id="o1")),
    lambda: PySparkException("a file was lost"),
)


class Requests:
    """Requests whose data is found; that of the warehouse is to be deleted."""

    def __init__(self, *customers: str) -> None:
        before = [step for step in STEPS if STEPS.index(step) < STEPS.index(Step.WAREHOUSE)]
        self._works = [Work(one, one, "somebody", [], 0, None, list(before)) for one in customers]
        self.problems = dict.fromkeys(customers, "")

    def open(self) -> list[Work]:
        return self._works

    def begin(self, work: Work, step: Step) -> None:
        pass

    def end_step(self, work: Work, step: Step, found: object) -> None:
        work.done.append(step)

    def waits(self, work: Work, problem: str) -> None:
        self.problems[work.id] = problem


@pytest.mark.parametrize("failure", FAILURES, ids=("of the JVM", "of Spark"))
def test_a_request_that_spark_fails_for_waits_longer_each_time_and_holds_up_no_other(
    failure: Callable[[], Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    fails = True

    def forget(driver: object, customer_id: str, *_: object, **__: object) -> SimpleNamespace:
        tries.append(customer_id)
        if customer_id == "large" and fails:
            raise failure()
        return SimpleNamespace(rows={}, slices=0)

    monkeypatch.setattr(steps, "forget", forget)
    requests: Any = Requests("large", "small")
    settings = SimpleNamespace(
        postgres_dsn=SimpleNamespace(get_secret_value=str), objects="", row_topics=(), profile="laptop"
    )
    monkeypatch.setattr(steps.reprocess_lock, "hold", lambda *_, **__: nullcontext())
    driver: Any = SimpleNamespace(settings=settings, stop=threading.Event(), crash_points=CrashPoints())
    unused: Any = SimpleNamespace(withdraw_rules=None)
    monkeypatch.setattr(Deletions, "_look_at_topics", lambda *_: {})
    now_ms = 0
    deletions = Deletions(driver, requests, unused, unused, clock_ms=lambda: now_ms)
    assert deletions.advance() == 1
    assert tries == ["large", "small"]
    assert requests.problems == {"large": type(failure()).__name__, "small": ""}
    waits = []
    for _ in range(12):
        began_ms, count = now_ms, len(tries)
        while len(tries) == count:
            now_ms += 10_000
            assert deletions.advance() == 1
        waits.append((now_ms - began_ms) // 1_000)
    assert waits == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600]
    fails = False
    now_ms += 3_600_000
    assert deletions.advance() == 0
    assert requests.problems == {"large": "", "small": ""}
