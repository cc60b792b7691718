"""The answers of `users` to its clients, as histories of objects: each user is one, and so is each contested e-mail address."""

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.chaos.linearizability import Operation, is_linearizable
from tests.integration.applications.tabling import UserReply


class UserState(NamedTuple):
    """A user as the model has it."""

    version: int
    name: str
    email: str


class Write(NamedTuple):
    """A write of a user. `create`, `patch` or `delete`; `version` is what If-Match names."""

    kind: str
    name: str | None = None
    email: str | None = None
    version: int | None = None


class History:
    """Operations by object, as they were answered; many clients add to it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.users: dict[str, list[Operation]] = defaultdict(list)
        self.addresses: dict[str, list[Operation]] = defaultdict(list)
        self.unknown = 0

    def add_user(self, user_id: str, request: Any, reply: UserReply, called_at: float) -> None:
        """A read (None) or write of a user was answered now; by status 0 or 503: not at all."""
        self._add(self.users, user_id, request, reply, called_at)

    def add_address(self, email: str, request: Any, reply: UserReply, called_at: float) -> None:
        """The holder of the address was read (None), or the request was ("take" or "free", user id)."""
        self._add(self.addresses, email, request, reply, called_at)

    def _add(
        self, objects: dict[str, list[Operation]], name: str, request: Any, reply: UserReply, called_at: float
    ) -> None:
        is_known = reply.status not in {0, 503}
        if not is_known and request is None:
            return
        returned_at = time.monotonic() if is_known else None
        with self._lock:
            self.unknown += not is_known
            objects[name].append(Operation(request, reply, called_at, returned_at))

    @property
    def operations(self) -> int:
        """How many there are."""
        return sum(len(each) for objects in (self.users, self.addresses) for each in objects.values())

    def faults(self) -> list[str]:
        """The objects whose histories are not linearizable."""
        wrong = [f"user {name}" for name, each in self.users.items() if not is_linearizable(each, None, user)]
        return wrong + [
            f"address {name}" for name, each in self.addresses.items() if not is_linearizable(each, "", address)
        ]


def user(state: UserState | None, operation: Operation) -> Sequence[UserState | None]:
    """A user: absent, or with version, name and e-mail address."""
    request, reply = operation.request, operation.reply
    status = reply.status if operation.returned_at is not None else None
    if request is None:
        return [state] if state == (None if status == 404 else _state_of(reply)) else []
    if request.kind == "create":
        if state is None and status in {None, 201}:
            return [UserState(1, request.name, request.email)]
        # Its address was another's.
        return [state] if state is None and status == 409 else []
    if state is None:
        return [None] if status == 404 else []
    is_wanted = request.version in {None, state.version}
    if status == 412 or not is_wanted:
        return [state] if status == 412 and not is_wanted else []
    if request.kind == "delete":
        return [None] if status in {None, 204} else []
    after = UserState(state.version + 1, request.name or state.name, request.email or state.email)
    return [after] if status is None or (status == 200 and after == _state_of(reply)) else []


def _state_of(reply: UserReply) -> UserState:
    return UserState(reply.body["version"], reply.body["name"], reply.body["email"])


def address(state: str, operation: Operation) -> Sequence[str]:
    """An address: free (""), or some user's."""
    request, reply = operation.request, operation.reply
    status = reply.status if operation.returned_at is not None else None
    if request is None:
        return [state] if state == "".join(one["id"] for one in reply.body["users"]) else []
    kind, user_id = request
    if kind == "take":
        if state == "" and status in {None, 201}:
            return [user_id]
        return [state] if state not in {"", user_id} and status == 409 else []
    if status == 404:
        # Another's deletion made it so, and may still be giving the address up.
        return [state]
    return [""] if state == user_id and status in {None, 204} else []
