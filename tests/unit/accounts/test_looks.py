"""Looks at single viewers, as they come into the audit log: each once in ten minutes, all of one request together."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from services.accounts.looks import AGAIN_MS, AccountsAudit
from services.accounts.store.audit import Actor
from services.query.core.limits import VIEWERS_MAX
from services.rim.turns.question_limits import InTurn, TooManyQuestions
from services.rim.turns.rates import Rates, TooManyRequests

ANN = Actor("person", "1", "ann@globex", organisation_id="globex")
BOT = Actor("token", "2", "a token", organisation_id="globex")
EVE = Actor("person", "3", "eve@acme", organisation_id="acme")


class Rows:
    """A connection that keeps the rows that are added."""

    def __init__(self) -> None:
        self.added: list[tuple[Any, ...]] = []

    def cursor(self) -> "Rows":
        return self

    async def __aenter__(self) -> "Rows":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def execute(self, _: str, row: tuple[Any, ...]) -> None:
        self.added.append(row)

    async def executemany(self, _: str, rows: list[tuple[Any, ...]]) -> None:
        self.added += rows


class OneTransaction:
    """Postgres, whose transactions are counted."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.count = 0

    async def ask(self, read: Callable[[Any], Awaitable[Any]]) -> Any:
        self.count += 1
        return await read(self.rows)

    @property
    def targets(self) -> list[str]:
        return [row[6] for row in self.rows.added]


def turns() -> InTurn:
    return InTurn(at_once=1, most=100)


@pytest.fixture
def postgres() -> OneTransaction:
    return OneTransaction()


async def test_each_viewer_of_a_request_has_a_row_that_is_never_cut_in_one_transaction(
    postgres: OneTransaction,
) -> None:
    looks = AccountsAudit(postgres, lambda: 0, turns=turns())  # type: ignore[arg-type]
    # As long as an id may be.
    viewers = [f"{number:03}-{'v' * 496}" for number in range(VIEWERS_MAX)]
    await looks.note(ANN, "looked_at_viewer", *viewers)
    assert (postgres.count, postgres.targets) == (1, viewers)


async def test_of_several_looks_those_that_were_noted_lately_are_left_out(postgres: OneTransaction) -> None:
    now_ms = [0]
    looks = AccountsAudit(postgres, lambda: now_ms[0], turns=turns())  # type: ignore[arg-type]
    await looks.note(ANN, "looked_at_viewer", "a", "b\0", "a")
    await looks.note(ANN, "looked_at_viewer", "a")
    await looks.note(ANN, "looked_at_viewer")
    await looks.note(ANN, "looked_at_viewer", "c", "b\0")
    assert (postgres.count, postgres.targets) == (2, ["a", "b\ufffd", "c"])
    now_ms[0] = AGAIN_MS
    await looks.note(ANN, "looked_at_viewer", "c", "b\0")
    assert postgres.targets[3:] == ["c", "b\ufffd"]


async def test_an_organisation_notes_so_much_in_a_time_and_others_have_their_own(postgres: OneTransaction) -> None:
    now = [0.0]
    looks = AccountsAudit(postgres, lambda: 0, turns=turns(), rates=Rates(5.0, clock=lambda: now[0]))  # type: ignore[arg-type]
    first = [f"viewer-{number}" for number in range(VIEWERS_MAX)]
    await looks.note(ANN, "looked_at_viewer", *first)
    with pytest.raises(TooManyRequests) as refused:
        await looks.note(BOT, "looked_at_viewer", "a", "b")
    assert (postgres.targets, refused.value.seconds) == (first, pytest.approx(0.4))
    # What is noted already costs nothing.
    await looks.note(ANN, "looked_at_viewer", *first)
    await looks.note(EVE, "looked_at_viewer", "a")
    now[0] += 0.4
    await looks.note(BOT, "looked_at_viewer", "a", "b")
    assert postgres.targets == [*first, "a", "a", "b"]


class Held(OneTransaction):
    """Postgres, whose answers come when the test lets them; it says whose rows are being added."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()
        self.under_way: list[str] = []

    async def ask(self, read: Callable[[Any], Awaitable[Any]]) -> Any:
        organisation = read.keywords["actor"].organisation_id  # type: ignore[attr-defined]
        self.under_way.append(organisation)
        await self.let.wait()
        self.under_way.remove(organisation)
        return await super().ask(read)


async def test_very_many_looks_of_one_organisation_leave_connections_to_another() -> None:
    held, most = Held(), 10
    looks = AccountsAudit(held, lambda: 0, turns=InTurn(at_once=1, most=most))
    many = [asyncio.create_task(looks.note(ANN, "looked", f"{number}")) for number in range(most + 3)]
    other = asyncio.create_task(looks.note(EVE, "looked", "one"))
    refused, _ = await asyncio.wait(many, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    assert sorted(held.under_way) == ["acme", "globex"]
    held.let.set()
    await other
    ended = await asyncio.gather(*many, return_exceptions=True)
    assert [type(one) for one in ended] == [*[type(None)] * most, *[TooManyQuestions] * 3]
    assert refused <= {task for task, one in zip(many, ended, strict=True) if one is not None}
