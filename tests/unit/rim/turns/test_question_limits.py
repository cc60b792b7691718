"""How many questions a party may have under way, and how many of it wait."""

import asyncio

import pytest

from services.rim.turns.question_limits import InTurn, QuestionLimit, TooManyQuestions


def test_a_party_has_so_many_at_a_time_and_others_have_their_own() -> None:
    limit = QuestionLimit(1)
    with limit.of("a"), limit.of("b"), pytest.raises(TooManyQuestions), limit.of("a"):
        pass
    with limit.of("a"):
        pass


async def test_questions_of_a_party_wait_for_their_turn_and_beyond_so_many_are_refused() -> None:
    turns, gate, begun = InTurn(at_once=2, most=4), asyncio.Event(), list[str]()

    async def ask(party: str) -> None:
        async with turns.of(party):
            begun.append(party)
            await gate.wait()

    asking = [asyncio.create_task(ask("a")) for _ in range(4)]
    await asyncio.sleep(0)
    assert begun == ["a", "a"]
    with pytest.raises(TooManyQuestions):
        await ask("a")
    asking.append(asyncio.create_task(ask("b")))
    await asyncio.sleep(0)
    assert begun == ["a", "a", "b"]
    # One that waits goes away: another may come.
    asking.pop(3).cancel()
    await asyncio.sleep(0)
    asking.append(asyncio.create_task(ask("a")))
    gate.set()
    await asyncio.gather(*asking)
    assert begun.count("a") == 4
    async with turns.of("a"):
        pass
