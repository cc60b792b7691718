"""The driver's threads share one connection, and each has a transaction of its own."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from services.finalizer.serving.fenced import FencedConnection

SECONDS_MAX = 30.0


class Connection:
    """A connection that is in one transaction at a time."""

    closed = False

    def __init__(self) -> None:
        self._is_in_transaction = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        assert not self._is_in_transaction, "a transaction within another"
        self._is_in_transaction = True
        yield
        self._is_in_transaction = False


class Noticed:
    """A lock, and whether somebody waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.is_awaited = threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.is_awaited.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_a_thread_waits_for_the_transaction_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: Connection())
    fenced = FencedConnection("", away_seconds_max=1, stop=threading.Event())
    noticed = Noticed()
    monkeypatch.setattr(fenced, "_one", noticed)
    order: list[str] = []
    with ThreadPoolExecutor(1) as other:
        seconds: list[Future[None]] = []

        def first(_: psycopg.Connection) -> None:
            seconds.append(other.submit(fenced.run, lambda _: order.append("second")))
            seconds[0].add_done_callback(lambda _: noticed.is_awaited.set())
            assert noticed.is_awaited.wait(SECONDS_MAX)
            order.append("first")

        fenced.run(first)
        seconds[0].result(SECONDS_MAX)
    assert order == ["first", "second"]
