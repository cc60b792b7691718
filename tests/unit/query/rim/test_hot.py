"""Hot rows of a question: many of them hold up nobody who asks meanwhile, and too large ones are left to the warehouse."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest

from services.query.core.customers import Customers
from services.query.core.question import AskedBreakdown, Question, understood
from services.query.rim.hot import DOCUMENTS_BYTES_MAX, HotDatabase
from tests.unit.query.parts.recounting import HOUR_MS, T0_MS

HOUR = T0_MS // HOUR_MS
ROWS_MAX = 1_000


class HeldRows(list[tuple[Any, ...]]):
    """Rows that are read on once the loop has let them: what is made of them on the loop itself waits in vain."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        super().__init__(rows)
        self.is_read = threading.Event()
        self.let = threading.Event()
        self.was_let = False

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self.is_read.set()
        self.was_let = self.let.wait(10)
        return super().__iter__()


class Served:
    """A database with one hot hour. It answers the statements of a question in their order, and gives rows a part at a time."""

    def __init__(self, *, count: int, size: int, parts: list[list[tuple[Any, ...]]]) -> None:
        self._answers: list[Any] = [(True, HOUR - 5, None), [(HOUR, "acme", None)], (count, size)]
        self._parts = list(parts)
        self.given: list[dict[str, Any]] = []

    async def ask(self, read: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `Postgres.ask`."""
        return await read(self)

    @property
    def connection(self) -> "Served":
        return self

    def cursor(self, *_: Any, **__: Any) -> "Served":
        return self

    async def __aenter__(self) -> "Served":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def execute(self, _: str, given: dict[str, Any] | None = None) -> None:
        self.given.append(given or {})

    async def fetchone(self) -> Any:
        return self._answers.pop(0)

    async def fetchall(self) -> Any:
        return self._answers.pop(0)

    async def fetchmany(self, _: int) -> list[tuple[Any, ...]]:
        return self._parts.pop(0) if self._parts else []


def question(by: str) -> Question:
    asked = AskedBreakdown(by=by, from_=str(T0_MS), to=str(T0_MS + HOUR_MS))
    return understood(asked, lambda _: Customers(), T0_MS + HOUR_MS)


def row(region: str | None, plan: str) -> tuple[Any, ...]:
    document = {"custom": {"plan": plan}} | ({} if region is None else {"region": region})
    return HOUR, "acme", msgspec.json.encode(document).decode()


async def test_rows_are_decoded_a_part_at_a_time_and_beside_the_event_loop() -> None:
    held = HeldRows([row("Hesse", "gold"), row(None, "free")])
    served = Served(count=3, size=300, parts=[held, [row("Bavaria", "gold")]])
    asking = asyncio.create_task(HotDatabase(served, ROWS_MAX).rows(question("region,custom.plan"), lambda _: False))
    assert await asyncio.to_thread(held.is_read.wait, 30)
    held.let.set()
    found = (await asking).rows
    assert held.was_let
    assert found.select(["hour", "customer_id", "region", "custom_0"]).to_pylist() == [
        {"hour": HOUR, "customer_id": "acme", "region": region, "custom_0": plan}
        for region, plan in (("Hesse", "gold"), (None, "free"), ("Bavaria", "gold"))
    ]


@pytest.mark.parametrize(
    ("by", "size", "is_left_out"),
    [
        # Whole rows are read for a field that is no column of the table, and for a custom dimension.
        ("region", DOCUMENTS_BYTES_MAX + 1, True),
        ("custom.plan", DOCUMENTS_BYTES_MAX + 1, True),
        ("region", DOCUMENTS_BYTES_MAX, False),
    ],
)
async def test_rows_that_are_too_large_to_be_read_in_time_are_left_to_the_warehouse(
    by: str, size: int, *, is_left_out: bool
) -> None:
    found = await HotDatabase(Served(count=9, size=size, parts=[]), ROWS_MAX).rows(question(by), lambda _: False)
    assert (found.is_left_out, found.rows.num_rows) == (is_left_out, 0)


async def test_the_size_of_whole_rows_is_asked_for_where_they_are_read() -> None:
    for by, has_documents in (("region", True), ("country", False), ("custom.plan", True)):
        served = Served(count=0, size=0, parts=[])
        await HotDatabase(served, ROWS_MAX).rows(question(by), lambda _: False)
        assert served.given[-1]["has_documents"] is has_documents
