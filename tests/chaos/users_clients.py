"""Clients of `users` for the chaos run: they read and write at any slot, and keep the answers."""

import random
import threading
import time
import uuid
from collections.abc import Sequence

from services.processor.applications.users.routes import user_id_of
from tests.chaos.users_history import History, Write
from tests.integration.applications.tabling import TableSlot, UserReply

#: How long a write is repeated, with its key, before it counts as unknown.
WRITE_SECONDS_MAX = 60.0
CONTESTED = ("one@example.org", "two@example.org")


class Shared:
    """What all clients know: users that were made, those with a private address and those with a contested one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.private: list[str] = []
        self.contested: dict[str, str] = {}


class Client(threading.Thread):
    """One client. Every write has a key, and is repeated with it until a slot answers."""

    def __init__(self, number: int, seed: int, slots: Sequence[TableSlot], history: History, shared: Shared) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self._random = random.Random(seed * 1_000 + number)
        self._slots = slots
        self._history = history
        self._shared = shared
        self._stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._act()
        except BaseException as error:  # noqa: BLE001  (raised by `stop`)
            self.failure = error

    def ask_to_stop(self) -> None:
        """No further operation is begun."""
        self._stopping.set()

    def stop(self) -> None:
        """Waits for the last operation. Raises what went wrong."""
        self.ask_to_stop()
        self.join(2 * WRITE_SECONDS_MAX)
        assert not self.is_alive()
        if self.failure is not None:
            raise self.failure

    def _act(self) -> None:
        action = self._random.random()
        with self._shared.lock:
            private, contested = list(self._shared.private), dict(self._shared.contested)
        if action < 0.3:
            self._act_on_address(self._random.choice(CONTESTED), contested)
        elif len(private) < 4:
            self._make_private()
        elif action < 0.65:
            self._read(self._random.choice(private))
        elif action < 0.97:
            self._patch(self._random.choice(private))
        else:
            self._delete_user(self._random.choice(private))

    def _call(self, method: str, path: str, body: object = None, **headers: str) -> UserReply:
        return self._random.choice(self._slots).call(method, path, body, **headers)

    def _write(self, method: str, path: str, body: object, key: str, **headers: str) -> UserReply:
        deadline = time.monotonic() + WRITE_SECONDS_MAX
        while True:
            reply = self._call(method, path, body, Idempotency_Key=key, **headers)
            if reply.status not in {0, 503} or time.monotonic() > deadline:
                return reply
            # No slot answers, or one answers with `Retry-After`.
            self._stopping.wait(0.05)

    def _key(self) -> str:
        return uuid.UUID(int=self._random.getrandbits(128)).hex

    def _read(self, user_id: str) -> UserReply:
        called_at = time.monotonic()
        reply = self._call("GET", f"/users/{user_id}")
        self._history.add_user(user_id, None, reply, called_at)
        return reply

    def _make_private(self) -> None:
        key = self._key()
        user_id, email = user_id_of(key), f"{key}.a@example.org"
        called_at = time.monotonic()
        reply = self._write("POST", "/users", {"email": email, "name": "new"}, key)
        self._history.add_user(user_id, Write("create", "new", email), reply, called_at)
        with self._shared.lock:
            self._shared.private.append(user_id)

    def _patch(self, user_id: str) -> None:
        version = None
        if self._random.random() < 0.5:
            seen = self._read(user_id)
            version = seen.body["version"] if seen.status == 200 else None
        key = self._key()
        write = Write("patch", name=key[:8], version=version)
        if self._random.random() < 0.3:
            write = Write("patch", email=f"{user_id}.{self._random.choice('abc')}@example.org", version=version)
        body = {name: value for name, value in (("name", write.name), ("email", write.email)) if value is not None}
        headers = {} if version is None else {"If_Match": f'"{version}"'}
        called_at = time.monotonic()
        reply = self._write("PATCH", f"/users/{user_id}", body, key, **headers)
        self._history.add_user(user_id, write, reply, called_at)

    def _delete_user(self, user_id: str) -> None:
        with self._shared.lock:
            if user_id in self._shared.private:
                self._shared.private.remove(user_id)
        called_at = time.monotonic()
        reply = self._write("DELETE", f"/users/{user_id}", None, self._key())
        self._history.add_user(user_id, Write("delete"), reply, called_at)

    def _act_on_address(self, email: str, contested: dict[str, str]) -> None:
        action = self._random.random()
        called_at = time.monotonic()
        if action < 0.4:
            reply = self._call("GET", f"/users?email={email}")
            self._history.add_address(email, None, reply, called_at)
        elif action < 0.7 or email not in contested:
            key = self._key()
            user_id = user_id_of(key)
            reply = self._write("POST", "/users", {"email": email, "name": "x"}, key)
            self._history.add_address(email, ("take", user_id), reply, called_at)
            self._history.add_user(user_id, Write("create", "x", email), reply, called_at)
            if reply.status != 409:
                with self._shared.lock:
                    self._shared.contested[email] = user_id
        else:
            user_id = contested[email]
            reply = self._write("DELETE", f"/users/{user_id}", None, self._key())
            self._history.add_address(email, ("free", user_id), reply, called_at)
            self._history.add_user(user_id, Write("delete"), reply, called_at)
