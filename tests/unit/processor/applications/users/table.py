"""The table in memory: the application on several partitions, requests' steps taken by hand, commands under way in any order."""

import itertools
import json
import random
from collections import deque
from typing import Any

from services.processor.applications.users.app import application
from services.processor.applications.users.settings import UserRules
from services.processor.engine.application.application import Application
from services.processor.engine.application.requests import Ask, Reply, Request, Submit
from services.processor.engine.driver import Driver, Weather
from shared import topics
from shared.partitioning import partition_of

PARTITIONS = 3
T0 = 1_795_000_000_000
RULES = UserRules(idempotency_ms=600_000, outcome_ms=60_000, claim_retry_ms=30_000)
_nonces = itertools.count(1)


class Call:
    """One request on its way: `reply` once it is answered."""

    def __init__(self, table: "Table", method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
        path, _, query = path.partition("?")
        parameters = dict(part.split("=", 1) for part in query.split("&")) if query else {}
        (route, parts), *_ = (
            (one, parts)
            for one in table.application.routes
            if one.method == method and (parts := _matched(one.path, path)) is not None
        )
        named = {name.lower().replace("_", "-"): value for name, value in headers.items()}
        nonce = f"{next(_nonces):032x}"
        request = Request(method, parts, parameters, named, body, nonce, PARTITIONS)
        self._table = table
        self._handling = route.handle(request)
        self.reply: Reply | None = None
        self._step: Any = None
        self._go_on(None)

    def _go_on(self, came: Any) -> None:
        try:
            self._step = self._handling.send(came)
        except StopIteration as end:
            self.reply = end.value

    def go(self) -> bool:
        """Takes its step, if that can be taken now."""
        if self.reply is not None:
            return False
        if isinstance(self._step, Submit):
            self._table.submit(self._step.key, self._step.value)
            self._go_on(None)
            return True
        answer = self._table.drivers[self._step.partition].ask(self._step.query, self._step.subject)
        if answer is None and not isinstance(self._step, Ask):
            return False
        self._go_on(answer)
        return True

    @property
    def answer(self) -> tuple[int, Any]:
        """Status and JSON."""
        assert self.reply is not None, "it waits"
        return self.reply.status, json.loads(self.reply.body) if self.reply.body else None

    @property
    def headers(self) -> dict[str, str]:
        assert self.reply is not None, "it waits"
        return dict(self.reply.headers)


class Table:
    """All partitions. What one commits for another is under way until it is delivered, in the order of its sender."""

    def __init__(self, weather: Weather, rules: UserRules = RULES) -> None:
        self.application: Application = application(rules)
        self.drivers = [Driver(self.application, weather, partition=number) for number in range(PARTITIONS)]
        self.now_ms = T0
        self._taken = [0] * PARTITIONS
        self.under_way: list[deque[tuple[bytes, bytes]]] = [deque() for _ in range(PARTITIONS)]

    def submit(self, key: bytes, value: bytes) -> None:
        """A command is folded where it belongs."""
        self.now_ms += 1
        number = partition_of(key, PARTITIONS)
        self.drivers[number].pipe(topics.USER_COMMANDS, key, value, at_ms=self.now_ms)
        self._gather()

    def _gather(self) -> None:
        for number, driver in enumerate(self.drivers):
            commands = driver.outputs(topics.USER_COMMANDS)
            for output in commands[self._taken[number] :]:
                assert output.by_key
                assert output.value is not None
                self.under_way[number].append((output.key, output.value))
            self._taken[number] = len(commands)

    def deliver(self, random_: random.Random | None = None) -> bool:
        """Delivers one command that is under way; False when there is none."""
        senders = [sent for sent in self.under_way if sent]
        if not senders:
            return False
        self.submit(*(random_.choice(senders) if random_ else senders[0]).popleft())
        return True

    def advance(self, ms: int) -> None:
        """Time passes."""
        self.now_ms += ms
        for driver in self.drivers:
            driver.advance_to(self.now_ms)
        self._gather()

    def start(self, method: str, path: str, body: Any = None, **headers: str) -> Call:
        """A request that is not waited for."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return Call(self, method, path, data, {"Content-Type": "application/json", **headers})

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Call:
        """A request, until it is answered."""
        call = self.start(method, path, body, **headers)
        self.settle(call)
        return call

    def settle(self, *calls: Call) -> None:
        """Everything goes on as far as it can."""
        while any([go(*calls), self.deliver()]):
            pass

    def made(self, email: str, name: str = "Ada", **headers: str) -> str:
        """Makes a user; its id."""
        status, body = self.call("POST", "/users", {"email": email, "name": name}, **headers).answer
        assert status == 201, body
        return str(body["id"])

    def rows(self, store: str) -> int:
        """Rows that stand in all partitions."""
        return sum(driver.rows[store] for driver in self.drivers)

    def published(self) -> dict[str, dict[str, Any] | None]:
        """What topic `users` has of each user, newest."""
        found: dict[str, dict[str, Any] | None] = {}
        for driver in self.drivers:
            for output in driver.outputs(topics.USERS):
                found[output.key.decode()] = None if output.value is None else json.loads(output.value)
        return found

    def listed(self, limit: int = 100) -> list[dict[str, Any]]:
        """All users, page by page."""
        users: list[dict[str, Any]] = []
        path = f"/users?limit={limit}"
        while True:
            status, page = self.call("GET", path).answer
            assert status == 200
            assert len(page["users"]) <= limit
            users += page["users"]
            if page["next_cursor"] is None:
                return users
            path = f"/users?limit={limit}&cursor={page['next_cursor']}"


def go(*calls: Call) -> bool:
    """Each request takes a step, if it can; whether any could."""
    went = [call.go() for call in calls]
    return any(went)


def keeping(outcomes_max: int) -> UserRules:
    """Rules under which few outcomes are kept, for as long as a test takes."""
    return RULES.model_copy(update={"outcomes_max": outcomes_max, "outcome_ms": 100_000_000})


def _matched(pattern: str, path: str) -> dict[str, str] | None:
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    parts = {}
    for want, give in zip(wanted, given, strict=True):
        if want.startswith("{"):
            parts[want[1:-1]] = give
        elif want != give:
            return None
    return parts
