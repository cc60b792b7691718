"""Pictures of the board: organisations take turns at what is drawn, and share the room for what is kept."""

import asyncio
from typing import Any

import pytest

from services.accounts.core.customer_scope import CustomerScope
from services.dashboard.live import board as module
from services.dashboard.live.board import PICTURES_MAX, LiveBoard
from services.dashboard.live.slices import CUSTOMERS_MAX
from tests.unit.dashboard.desk import quiet_board
from tests.unit.dashboard.records import live, slice_of

MANY, FEW = CustomerScope(own=frozenset({"acme"})), CustomerScope(own=frozenset({"globex"}))
FEWS_PAGE = ("few", "person:f")


@pytest.fixture
async def drawn(monkeypatch: pytest.MonkeyPatch) -> tuple[LiveBoard, list[Any]]:
    """A board that has counted, and what it has drawn or summed since."""
    board, noted = quiet_board(), list[Any]()
    draw, summed = LiveBoard._draw_one, module.summed

    def noting(self: LiveBoard, asker: tuple[str, str], *look: Any) -> Any:
        noted.append(asker)
        return draw(self, asker, *look)

    def summing(*given: Any, **named: Any) -> Any:
        noted.append("sums")
        return summed(*given, **named)

    monkeypatch.setattr(LiveBoard, "_draw_one", noting)
    monkeypatch.setattr(module, "summed", summing)
    for customer in ("acme", "globex"):
        board.take_records([live(100, customer_id=customer, slices={"cdn=x": slice_of(viewers_now=3)}, viewers_now=4)])
    board._history.settle(10**15)
    board._draw()
    return board, noted


async def test_slice_after_slice_of_one_organisation_takes_no_kept_picture_of_another(
    drawn: tuple[LiveBoard, list[Any]],
) -> None:
    board, noted = drawn
    for number in range(PICTURES_MAX):
        await board.picture(("many", f"token:{number}"), MANY, "acme", f"cdn=z{number}")
    first = await board.picture(FEWS_PAGE, FEW, "globex", "cdn=x")
    for number in range(PICTURES_MAX, 2 * PICTURES_MAX + 100):
        await board.picture(("many", f"token:{number}"), MANY, "acme", f"cdn=z{number}")
    noted.clear()
    assert await board.picture(FEWS_PAGE, FEW, "globex", "cdn=x") == first
    assert noted == []


async def test_scope_after_scope_of_one_organisation_takes_no_sums_of_another(
    drawn: tuple[LiveBoard, list[Any]],
) -> None:
    board, noted = drawn

    async def picture(number: int) -> None:
        scope = CustomerScope(own=frozenset({"acme", f"c{number}"}))
        await board.picture(("many", f"token:{number}"), scope, "acme")

    for number in range(4 * CUSTOMERS_MAX):
        await picture(number)
    await board.picture(FEWS_PAGE, FEW, "globex")
    for number in range(4 * CUSTOMERS_MAX, 8 * CUSTOMERS_MAX):
        await picture(number)
    noted.clear()
    await board.picture(FEWS_PAGE, FEW, "globex", "cdn=(other)")
    assert noted == [FEWS_PAGE]


async def test_pictures_of_one_organisation_are_drawn_between_those_of_others(
    drawn: tuple[LiveBoard, list[Any]],
) -> None:
    board, noted = drawn
    many = [
        asyncio.create_task(board.picture(("many", f"token:{number}"), MANY, "acme", f"cdn=z{number}"))
        for number in range(20)
    ]
    await asyncio.sleep(0)
    await board.picture(FEWS_PAGE, FEW, "globex")
    drawn_before = [one for one in noted if one != "sums"]
    assert drawn_before.index(FEWS_PAGE) <= 2
    await asyncio.gather(*many)


async def test_all_who_look_at_the_same_wait_for_one_drawing(drawn: tuple[LiveBoard, list[Any]]) -> None:
    board, noted = drawn
    found = await asyncio.gather(*(board.picture(FEWS_PAGE, FEW, "globex") for _ in range(10)))
    assert len(set(found)) == 1
    assert noted.count(FEWS_PAGE) == 1
