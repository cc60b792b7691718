"""The models by which the chaos run of `users` judges: what one user and one address may answer, and what not."""

from typing import Any

import pytest

from tests.chaos.users_history import History, Write
from tests.integration.tabling import Told


def standing(version: int, name: str, email: str = "a@b.c") -> dict[str, Any]:
    return {"version": version, "name": name, "email": email}


MADE = (Write("create", "a", "a@b.c"), Told(201, standing(1, "a")))
PATCHED = (Write("patch", "b"), Told(200, standing(2, "b")))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([MADE, (None, Told(200, standing(1, "a")))], True),
        ([MADE, (None, Told(404))], False),
        ([(None, Told(404)), MADE], True),
        ([MADE, MADE], False),
        ([MADE, PATCHED, (None, Told(200, standing(2, "b")))], True),
        ([MADE, PATCHED, (None, Told(200, standing(1, "a")))], False),
        ([MADE, PATCHED, PATCHED], False),
        ([MADE, PATCHED, (Write("patch", "c", version=1), Told(412))], True),
        ([MADE, PATCHED, (Write("patch", "c", version=1), Told(200, standing(3, "c")))], False),
        ([MADE, (Write("patch", "c", version=1), Told(412))], False),
        ([MADE, (Write("patch", email="d@b.c"), Told(200, standing(2, "a", "d@b.c")))], True),
        ([MADE, (Write("delete"), Told(204)), (None, Told(404)), (Write("delete"), Told(404))], True),
        ([MADE, (Write("delete"), Told(404))], False),
        ([MADE, (Write("delete"), Told(204)), PATCHED], False),
        ([(Write("create", "a", "a@b.c"), Told(409)), (None, Told(404))], True),
        (
            [
                MADE,
                (Write("patch", "b"), Told(0)),
                (None, Told(200, standing(1, "a"))),
                (None, Told(200, standing(2, "b"))),
            ],
            True,
        ),
        ([MADE, (Write("patch", "b"), Told(503)), (None, Told(404))], False),
        ([(Write("create", "a", "a@b.c"), Told(503)), (None, Told(404)), (None, Told(200, standing(1, "a")))], True),
        ([MADE, (None, Told(503))], True),
    ],
)
def test_one_user(told: list[tuple[Write | None, Told]], expected: bool) -> None:
    history = History()
    for number, (asked, answer) in enumerate(told):
        history.add_user("u", asked, answer, called_at=_after(history, number))
    assert history.faults() == ([] if expected else ["user u"])


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(("take", "u"), Told(201)), (("take", "v"), Told(409))], True),
        ([(("take", "u"), Told(201)), (("take", "v"), Told(201))], False),
        ([(("take", "v"), Told(409))], False),
        ([(("take", "u"), Told(201)), (("free", "u"), Told(204)), (("take", "v"), Told(201))], True),
        ([(("take", "u"), Told(201)), (("free", "u"), Told(204)), (("take", "v"), Told(409))], False),
        ([(("take", "u"), Told(201)), (None, Told(200, {"users": [{"id": "u"}]}))], True),
        ([(("take", "u"), Told(201)), (None, Told(200, {"users": []}))], False),
        ([(("take", "u"), Told(0)), (None, Told(200, {"users": []})), (("take", "v"), Told(409))], True),
        ([(("take", "u"), Told(201)), (("free", "u"), Told(0)), (("take", "v"), Told(201))], True),
    ],
)
def test_one_address(told: list[tuple[tuple[str, str] | None, Told]], expected: bool) -> None:
    history = History()
    for number, (asked, answer) in enumerate(told):
        history.add_address("a@b.c", asked, answer, called_at=_after(history, number))
    assert history.faults() == ([] if expected else ["address a@b.c"])


def _after(history: History, number: int) -> float:
    """A time after every answer so far."""
    ends = [one.returned_at for each in (history.users, history.addresses) for ones in each.values() for one in ones]
    return max((end for end in ends if end is not None), default=float(number)) + 1e-9
