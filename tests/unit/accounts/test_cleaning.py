"""What is over is deleted some at a time: neither much of it nor one table keeps the rest."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from services.accounts.service import Accounts
from services.accounts.store.logins.sessions import CLEANED_AT_ONCE, OVER
from services.rim.database.pool import QueryRefused


class Tables:
    """Postgres, with so much over in each table; what is deleted from one, `refuses`, fails."""

    def __init__(self, refuses: str) -> None:
        self.over = dict.fromkeys(OVER, 2 * CLEANED_AT_ONCE + 1)
        self.refuses = refuses
        self.transactions = 0

    async def ask(self, read: Callable[[Any], Awaitable[Any]]) -> Any:
        self.transactions += 1
        return await read(self)

    async def execute(self, statement: str) -> Any:
        table = statement.split()[2].removeprefix("accounts.")
        if table == self.refuses:
            raise QueryRefused("too slow")
        deleted = min(self.over[table], CLEANED_AT_ONCE)
        self.over[table] -= deleted
        return SimpleNamespace(rowcount=deleted)


@pytest.mark.parametrize("refuses", OVER)
async def test_what_is_over_is_deleted_in_parts_and_a_table_that_fails_keeps_no_other(
    monkeypatch: pytest.MonkeyPatch, refuses: str
) -> None:
    accounts, tables = Accounts("postgresql://nobody@127.0.0.1:1/none"), Tables(refuses)
    monkeypatch.setattr(accounts.postgres, "ask", tables.ask)
    with pytest.raises(QueryRefused):
        await accounts.clean()
    assert {table for table, over in tables.over.items() if over} == {refuses}
    assert tables.transactions == 3 * (len(OVER) - 1) + 1
