"""The chaos run's clients, at a table in memory: a right table raises no alarm, and one with stale answers does."""

import random
import threading
from typing import Any

from tests.chaos.users_clients import Client, Shared
from tests.chaos.users_history import History
from tests.integration.applications.tabling import UserReply
from tests.unit.processor.applications.users.table import Table

CALLS = 250


class Slot:
    """Stands in for a slot; `stale` of a hundred reads repeat an earlier answer, `deaf` of a hundred calls have none."""

    def __init__(self, table: Table, lock: threading.Lock, *, stale: int = 0, deaf: int = 0) -> None:
        self._table = table
        self._lock = lock
        self._stale = stale
        self._deaf = deaf
        self._random = random.Random(1)
        self._replies: dict[str, UserReply] = {}
        self.calls = 0

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> UserReply:
        with self._lock:
            self.calls += 1
            if method == "GET" and path in self._replies and self._random.randrange(100) < self._stale:
                return self._replies[path]
            call = self._table.call(method, path, body, **headers)
            status, document = call.answer
            if self._random.randrange(100) < self._deaf:
                return UserReply(0)
            reply = UserReply(status, document, call.headers)
            if method == "GET":
                self._replies[path] = reply
            return reply


def judged(**how: int) -> tuple[History, list[str]]:
    """The answers of a table to its clients, and which of them are wrong."""
    table, lock, history, shared = Table("calm"), threading.Lock(), History(), Shared()
    slots: Any = [Slot(table, lock, **how) for _ in range(2)]
    clients = [Client(number, 7, slots, history, shared) for number in range(3)]
    for client in clients:
        client.start()
    while sum(slot.calls for slot in slots) < CALLS:
        clients[0].join(0.02)
        assert all(client.failure is None for client in clients)
    for client in clients:
        client.stop()
    return history, history.faults()


def test_a_right_table_raises_no_alarm() -> None:
    history, faults = judged()
    assert faults == []
    assert history.operations > CALLS // 2
    assert history.unknown == 0


def test_answers_that_get_lost_are_requested_again_and_are_no_fault() -> None:
    history, faults = judged(deaf=20)
    assert (faults, history.unknown) == ([], 0)


def test_old_news_is_a_fault() -> None:
    assert judged(stale=30)[1] != []
