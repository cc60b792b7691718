"""Slots of application `users`, and clients of their REST API."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from deploy.local.broker import Broker
from tests.integration.parts.lookup_slots import TOKEN, LookupSlot
from tests.integration.parts.slots import wait_until


class UserReply(NamedTuple):
    """An answer: status 0 where there was none."""

    status: int
    body: Any = None
    headers: Any = None

    @property
    def etag(self) -> str:
        return str(self.headers["ETag"])

    @property
    def location(self) -> str:
        return str(self.headers["Location"])


class TableSlot(LookupSlot):
    """A slot of `users`; it answers within `request_ms` at the most."""

    def __init__(self, broker: Broker, folder: Path, number: int, request_ms: int = 30_000, **environ: str) -> None:
        variables = {"PROCESSOR_APPLICATION": "users", "PROCESSOR_REQUEST_MS_MAX": str(request_ms)} | environ
        super().__init__(broker, folder, number, **variables)
        self._patience = request_ms / 1000 + 30

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> UserReply:
        """One request. A 503 must have `Retry-After`."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers}
        for name, value in sent.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=self._patience) as answer:
                return UserReply(answer.status, _json(answer.read()), answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                reply = UserReply(error.code, _json(error.read()), error.headers)
            assert reply.status != 503 or reply.headers["Retry-After"]
            return reply
        except (OSError, urllib.error.URLError):
            return UserReply(0)

    def answered(self, method: str, path: str, body: Any, key: str) -> UserReply:
        """A write, repeated with its key while no slot can answer."""
        answers: list[UserReply] = []

        def is_answered() -> bool:
            answers.append(self.call(method, path, body, Idempotency_Key=key))
            return answers[-1].status not in {0, 503}

        wait_until(is_answered, f"{method} {path} is answered", 180)
        return answers[-1]

    def listed(self, limit: int = 100) -> list[dict[str, Any]]:
        """All users, page by page."""
        users: list[dict[str, Any]] = []
        path = f"/users?limit={limit}"
        while True:
            reply = self.call("GET", path)
            assert reply.status == 200, reply
            users += reply.body["users"]
            if reply.body["next_cursor"] is None:
                return users
            path = f"/users?limit={limit}&cursor={reply.body['next_cursor']}"


def _json(body: bytes) -> Any:
    return json.loads(body) if body else None
