"""The models by which the chaos run of `users` judges: what one user and one address may answer, and what not."""

from typing import Any

import pytest

from tests.chaos.users_history import History, Write
from tests.integration.applications.tabling import UserReply


def state(version: int, name: str, email: str = "a@b.c") -> dict[str, Any]:
    return {"version": version, "name": name, "email": email}


MADE = (Write("create", "a", "a@b.c"), UserReply(201, state(1, "a")))
PATCHED = (Write("patch", "b"), UserReply(200, state(2, "b")))


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([MADE, (None, UserReply(200, state(1, "a")))], True),
        ([MADE, (None, UserReply(404))], False),
        ([(None, UserReply(404)), MADE], True),
        ([MADE, MADE], False),
        ([MADE, PATCHED, (None, UserReply(200, state(2, "b")))], True),
        ([MADE, PATCHED, (None, UserReply(200, state(1, "a")))], False),
        ([MADE, PATCHED, PATCHED], False),
        ([MADE, PATCHED, (Write("patch", "c", version=1), UserReply(412))], True),
        ([MADE, PATCHED, (Write("patch", "c", version=1), UserReply(200, state(3, "c")))], False),
        ([MADE, (Write("patch", "c", version=1), UserReply(412))], False),
        ([MADE, (Write("patch", email="d@b.c"), UserReply(200, state(2, "a", "d@b.c")))], True),
        ([MADE, (Write("delete"), UserReply(204)), (None, UserReply(404)), (Write("delete"), UserReply(404))], True),
        ([MADE, (Write("delete"), UserReply(404))], False),
        ([MADE, (Write("delete"), UserReply(204)), PATCHED], False),
        ([(Write("create", "a", "a@b.c"), UserReply(409)), (None, UserReply(404))], True),
        (
            [
                MADE,
                (Write("patch", "b"), UserReply(0)),
                (None, UserReply(200, state(1, "a"))),
                (None, UserReply(200, state(2, "b"))),
            ],
            True,
        ),
        ([MADE, (Write("patch", "b"), UserReply(503)), (None, UserReply(404))], False),
        (
            [
                (Write("create", "a", "a@b.c"), UserReply(503)),
                (None, UserReply(404)),
                (None, UserReply(200, state(1, "a"))),
            ],
            True,
        ),
        ([MADE, (None, UserReply(503))], True),
    ],
)
def test_one_user(operations: list[tuple[Write | None, UserReply]], expected: bool) -> None:
    history = History()
    for number, (operation, answer) in enumerate(operations):
        history.add_user("u", operation, answer, called_at=_after(history, number))
    assert history.faults() == ([] if expected else ["user u"])


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([(("take", "u"), UserReply(201)), (("take", "v"), UserReply(409))], True),
        ([(("take", "u"), UserReply(201)), (("take", "v"), UserReply(201))], False),
        ([(("take", "v"), UserReply(409))], False),
        ([(("take", "u"), UserReply(201)), (("free", "u"), UserReply(204)), (("take", "v"), UserReply(201))], True),
        ([(("take", "u"), UserReply(201)), (("free", "u"), UserReply(204)), (("take", "v"), UserReply(409))], False),
        ([(("take", "u"), UserReply(201)), (None, UserReply(200, {"users": [{"id": "u"}]}))], True),
        ([(("take", "u"), UserReply(201)), (None, UserReply(200, {"users": []}))], False),
        ([(("take", "u"), UserReply(0)), (None, UserReply(200, {"users": []})), (("take", "v"), UserReply(409))], True),
        ([(("take", "u"), UserReply(201)), (("free", "u"), UserReply(0)), (("take", "v"), UserReply(201))], True),
    ],
)
def test_one_address(operations: list[tuple[tuple[str, str] | None, UserReply]], expected: bool) -> None:
    history = History()
    for number, (operation, answer) in enumerate(operations):
        history.add_address("a@b.c", operation, answer, called_at=_after(history, number))
    assert history.faults() == ([] if expected else ["address a@b.c"])


def _after(history: History, number: int) -> float:
    """A time after every answer so far."""
    ends = [one.returned_at for each in (history.users, history.addresses) for ones in each.values() for one in ones]
    return max((end for end in ends if end is not None), default=float(number)) + 1e-9
