"""Credentials are looked up in turns of the addresses that ask: a flood of invented ones keeps nobody else waiting."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.accounts.core.credentials import Credential, Kind
from services.accounts.core.principal import Principal
from services.accounts.credential_queue import AT_ONCE_MAX, WAITING_MAX, CredentialQueue, TooManyWaiting
from services.accounts.http.access import ACCOUNT, Routing
from services.accounts.http.guard import Cookie, Guard
from services.accounts.http.hosts import Hosts
from services.rim.database.pool import PostgresAway
from tests.unit.dashboard.door import OWNER, Known, credential, door


class Slow(Known):
    """Looks one credential up whenever the test lets it; notes in which order."""

    def __init__(self, known: Known) -> None:
        self.people = known.people
        self.problem = None
        self.asked: list[Credential] = []
        self.under_way_max = self.under_way = 0
        self.let = asyncio.Semaphore(0)

    async def principal(self, credential: Credential) -> Principal | None:
        self.asked.append(credential)
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        try:
            await self.let.acquire()
        finally:
            self.under_way -= 1
        return self.people.get(credential)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - of fakes, in this very loop
            await asyncio.sleep(0)


async def test_a_flood_of_invented_credentials_keeps_another_address_waiting_for_one_turn() -> None:
    made = door()
    assert isinstance(made.identities, Known)
    slow, app = Slow(made.identities), web.Application()
    routing = Routing(app)
    guard = Guard(
        routing,
        slow,
        hosts=Hosts(["127.0.0.1"]),
        cookie=Cookie(is_secure=False),
        away_page=web.Response,
        address=lambda request: request.headers["Address"],
    )
    app.middlewares.append(guard.answer)

    async def answer(_: web.Request) -> web.Response:
        return web.Response()

    routing.get("/", answer, ACCOUNT, name="it")
    async with TestClient(TestServer(app)) as client:

        async def status(who: Credential, address: str) -> int:
            name, value = f"{Cookie(is_secure=False).name}", who.text
            async with client.get("/", headers={"Address": address, "Cookie": f"{name}={value}"}) as found:
                return found.status

        forged = credential(Kind.SESSION, 200)
        flood = [asyncio.create_task(status(forged, "203.0.113.9")) for _ in range(40)]
        await until(lambda: slow.under_way == AT_ONCE_MAX)
        honest = asyncio.create_task(status(OWNER, "198.51.100.1"))
        late = [asyncio.create_task(status(forged, "203.0.113.9")) for _ in range(40)]
        # One after another: how many of the flood's have their turn before the honest one's.
        for answered in range(1, 40):
            slow.let.release()
            await until(lambda asked=AT_ONCE_MAX + answered: len(slow.asked) >= asked)  # type: ignore[misc]
            if OWNER in slow.asked:
                break
        assert OWNER in slow.asked
        for _ in range(200):
            slow.let.release()
        assert await honest == 200
        assert slow.under_way_max == AT_ONCE_MAX
        assert set(await asyncio.gather(*flood, *late)) == {401}


async def held(queue: CredentialQueue, address: str, gate: asyncio.Event) -> str:
    async with queue.turn(address):
        await gate.wait()
    return address


async def test_addresses_take_turns_and_a_network_of_ipv6_is_one() -> None:
    queue, gates, order = CredentialQueue(), [asyncio.Event() for _ in range(AT_ONCE_MAX)], list[str]()
    first = [asyncio.create_task(held(queue, "a", gate)) for gate in gates]
    await asyncio.sleep(0)

    async def noted(address: str, name: str) -> None:
        async with queue.turn(address):
            order.append(name)

    names = [("2001:db8::1", "x1"), ("2001:db8::2", "x2"), ("2001:db8::3", "x3"), ("192.0.2.1", "y1")]
    waiting = [asyncio.create_task(noted(*one)) for one in names]
    await asyncio.sleep(0)
    gates[0].set()
    await asyncio.gather(*waiting)
    assert order == ["x1", "y1", "x2", "x3"]
    for gate in gates:
        gate.set()
    await asyncio.gather(*first)


async def test_an_address_with_too_many_waiting_is_refused_and_others_are_not() -> None:
    queue, gate = CredentialQueue(), asyncio.Event()
    many = [asyncio.create_task(held(queue, "192.0.2.1", gate)) for _ in range(AT_ONCE_MAX + WAITING_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyWaiting):
        await held(queue, "192.0.2.1", gate)
    other = asyncio.create_task(held(queue, "192.0.2.2", gate))
    gate.set()
    assert await other == "192.0.2.2"
    await asyncio.gather(*many)


@pytest.mark.parametrize("how", ["cancelled", "late", "called"])
async def test_who_gives_up_leaves_its_turn_to_others(how: str) -> None:
    queue, gate = CredentialQueue(wait_seconds_max=0.01 if how == "late" else 30), asyncio.Event()
    first = [asyncio.create_task(held(queue, "a", gate)) for _ in range(AT_ONCE_MAX)]
    await asyncio.sleep(0)
    gives_up: Awaitable[str] = asyncio.create_task(held(queue, "b", gate))
    assert isinstance(gives_up, asyncio.Task)
    await asyncio.sleep(0)
    if how == "called":
        # Its turn is handed over, and it is cancelled before it can take it.
        gate.set()
        await asyncio.gather(*first)
    if how == "late":
        with pytest.raises(PostgresAway):
            await gives_up
    else:
        gives_up.cancel()
        await asyncio.gather(gives_up, return_exceptions=True)
    gate.set()
    await asyncio.gather(*first)
    # All turns are there again.
    again = asyncio.Event()
    full = [asyncio.create_task(held(queue, "c", again)) for _ in range(AT_ONCE_MAX)]
    await asyncio.sleep(0)
    again.set()
    assert await asyncio.wait_for(asyncio.gather(*full), 30) == ["c"] * AT_ONCE_MAX
