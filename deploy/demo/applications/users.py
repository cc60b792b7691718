"""The part of `users`: some are made, changed and deleted over the REST API, one address is refused; all are read back."""

import http
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from deploy.demo.applications.part import Part, Running, line
from deploy.demo.comparing.compare import Line

USERS: Final = 20
CHANGED: Final = 5
DELETED: Final = 4
_PAGE: Final = 7


def play(running: Running) -> Sequence[Line]:
    """Writes users, and compares the API's and the warehouse's users with them."""
    made = [_answer(running, "POST", "/users", f"make-{number}", _user(number)) for number in range(USERS)]
    ids = [body["id"] for status, body in made if status == http.HTTPStatus.CREATED]
    conflict, _ = _answer(running, "POST", "/users", "taken", _user(0) | {"name": "Another"})
    for number, user_id in enumerate(ids[:CHANGED]):
        _answer(running, "PATCH", f"/users/{user_id}", f"change-{number}", {"name": "Changed"})
    for number, user_id in enumerate(ids[-DELETED:]):
        _answer(running, "DELETE", f"/users/{user_id}", f"delete-{number}")
    listed = _listed(running)
    found = running.found(f"/users?email={quote(_user(0)['email'])}")
    names = [one["name"] for one in found["users"]] if found is not None else []

    def is_done() -> bool:
        rows = _rows(running)
        return len(rows) == USERS and sum(row["deleted"] for row in rows) == DELETED

    running.until(is_done)
    rows = _rows(running)
    running.say(f"  {len(ids)} users; a second one with the address of the first is answered {conflict}")
    return [
        line("users: made", len(ids), USERS),
        line("users: answer to an address that is taken", conflict, http.HTTPStatus.CONFLICT.value),
        line("users: listed, of all partitions", len(listed), USERS - DELETED),
        line("users: listed twice", len(listed) - len({one["id"] for one in listed}), 0),
        line("users: changed", sum(one["name"] == "Changed" for one in listed), CHANGED),
        line("users: found by address", ", ".join(names), "Changed"),
        line("users: rows in the warehouse", len(rows), USERS),
        line("users: of them deleted", sum(row["deleted"] for row in rows), DELETED),
    ]


def _user(number: int) -> dict[str, Any]:
    return {"email": f"user{number}@demo.example", "name": f"User {number}", "attributes": {"plan": "gold"}}


def _answer(
    running: Running, method: str, path: str, key: str, document: dict[str, Any] | None = None
) -> tuple[int, Any]:
    """The answer to a write, which may be sent several times: the idempotency key makes this one write."""
    headers = {"Idempotency-Key": key} | ({"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {})
    return running.answered(method, path, document, headers)


def _listed(running: Running) -> list[dict[str, Any]]:
    """All pages."""
    users: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = running.found(f"/users?limit={_PAGE}{cursor}")
        if page is None:
            return users
        users += page["users"]
        if page["next_cursor"] is None:
            return users
        cursor = f"&cursor={quote(page['next_cursor'])}"


def _rows(running: Running) -> list[dict[str, Any]]:
    return running.rows("users", "id, deleted")


PART: Final = Part("users", play)
