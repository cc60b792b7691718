"""Turns for bodies that are parsed: customers have equal shares, and addresses take turns."""

import asyncio

import pytest

from services.collector.admission.fair_queue import FairQueue, TooManyWaiting, WaitingLimits
from tests.unit.collector.http.serving import until


class Work:
    """A fair queue whose work lasts as long as is given, by a clock that stands still meanwhile."""

    def __init__(self, limits: WaitingLimits) -> None:
        self.seconds = 0.0
        self.queue = FairQueue(limits, lambda: self.seconds)
        self.order: list[str] = []
        self.go_on = asyncio.Event()

    async def ask(self, customer: str, address: str, seconds: float = 1.0) -> None:
        async with self.queue.turn(customer, address):
            self.order.append(f"{customer}/{address}")
            await self.go_on.wait()
            self.seconds += seconds

    async def run(self, requests: list[tuple[str, str, float]]) -> list[str]:
        tasks = [asyncio.create_task(self.ask(*each)) for each in requests]
        await until(lambda: self.queue.waiting == len(requests) - 1)
        self.go_on.set()
        await asyncio.gather(*tasks)
        return self.order


async def test_turns_go_round_the_addresses_of_a_customer() -> None:
    work = Work(WaitingLimits(by_address_max=3, by_customer_max=5, all_max=6))
    addresses = ["many", "many", "many", "one", "many", "other"]
    requests = [asyncio.create_task(work.ask("acme", address)) for address in addresses]
    await until(lambda: work.queue.waiting == 5)
    with pytest.raises(TooManyWaiting):
        await work.ask("acme", "another")
    requests[1].cancel()
    work.go_on.set()
    await asyncio.gather(*requests, return_exceptions=True)
    # The one that was broken off had its turn all the same.
    assert work.order == ["acme/many", "acme/one", "acme/other", "acme/many", "acme/many"]
    async with work.queue.turn("acme", "many"):
        assert work.queue.waiting == 0


async def test_customers_have_equal_shares_of_the_time_for_bodies_of_any_cost() -> None:
    work = Work(WaitingLimits(by_address_max=9, by_customer_max=9, all_max=20))
    heavy = [("heavy", f"{number}", 4.0) for number in range(3)]
    light = [("light", f"{number}", 1.0) for number in range(6)]
    order = await work.run(heavy + light)
    assert [each.partition("/")[0] for each in order] == ["heavy", *["light"] * 4, "heavy", "light", "light", "heavy"]


async def test_an_address_has_no_more_turns_for_naming_many_customers() -> None:
    work = Work(WaitingLimits(by_address_max=2, by_customer_max=9, all_max=20))
    requests = [asyncio.create_task(work.ask(f"customer-{number}", "bad")) for number in range(3)]
    await until(lambda: work.queue.waiting == 2)
    with pytest.raises(TooManyWaiting):
        await work.ask("another", "bad")
    work.go_on.set()
    await asyncio.gather(*requests)
