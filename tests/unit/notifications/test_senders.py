"""One attempt at a message over HTTP: what becomes of it, and of others that go to the same host."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from services.alerts.store.deliveries import Claimed
from services.notifications import senders
from services.notifications.mails import Mails
from services.notifications.outcome import SENT
from services.notifications.senders import Senders, is_public
from services.notifications.settings import NotificationsSettings
from tests.unit.alerts.events import event

Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def sending(handler: Handler) -> AsyncIterator[tuple[Senders, str]]:
    """The sender, and the address of a server that answers by `handler`."""
    settings = NotificationsSettings(postgres_dsn="postgresql://x/y", private_receivers=True)
    app = web.Application()
    app.router.add_post("/{path}", handler)
    mails = Mails(settings)
    async with TestServer(app) as server, senders.session(settings) as session:
        yield Senders(settings, session, mails), str(server.make_url(""))
    mails.close()


def claimed(url: str, **others: Any) -> Claimed:
    of_event = msgspec.to_builtins(event()) | others
    return Claimed("m", event().incident_id, 1, of_event, 1, "r", "o", "slack", {"url": url}, None)


async def test_a_message_of_a_change_that_this_version_cannot_read_is_dead_by_itself() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response()

    async with sending(handler) as (one, url):
        outcome = await one.send(claimed(f"{url}/x", metric="seeks"))
    assert outcome == ("it cannot be made or sent: ValidationError", False)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
async def test_what_may_do_better_later_is_tried_again(status: int) -> None:
    assert await may_pass(status)


@pytest.mark.parametrize("status", [302, 308, 400, 402, 404, 406, 409, 410, 412])
async def test_what_will_not_do_better_is_dead_at_once(status: int) -> None:
    assert not await may_pass(status)


@pytest.mark.parametrize("address", ["https://127.1/", "https://1/", "https://a..b/", "mailto:x", "https://a:99999/"])
async def test_an_address_that_cannot_be_read_is_dead_at_once(address: str) -> None:
    settings = NotificationsSettings(postgres_dsn="postgresql://x/y")
    mails = Mails(settings)
    async with senders.session(settings) as session:
        outcome = await Senders(settings, session, mails).send(claimed(address))
    mails.close()
    assert not outcome.may_pass


async def may_pass(status: int) -> bool:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    async with sending(handler) as (one, url):
        outcome = await one.send(claimed(f"{url}/x"))
    assert outcome.problem == f"answered {status}"
    return outcome.may_pass


async def test_receivers_that_hang_keep_no_message_to_the_same_host_waiting() -> None:
    """An organisation may have 12 messages under way. With as many to one host, all others to it ran out of time."""
    hanging = asyncio.Semaphore(0)
    ended = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        if request.path == "/slow":
            hanging.release()
            await ended.wait()
        return web.Response()

    async with sending(handler) as (one, url):
        slow = [asyncio.create_task(one.send(claimed(f"{url}/slow"))) for _ in range(12)]
        async with asyncio.timeout(30):
            for _ in slow:
                await hanging.acquire()
        assert await one.send(claimed(f"{url}/quick")) == SENT
        ended.set()
        assert await asyncio.gather(*slow) == [SENT] * 12


@pytest.mark.parametrize(
    "address",
    [
        *("fec0::1", "::7f00:1", "::10.0.0.1", "64:ff9b:1::7f00:1", "::ffff:0:127.0.0.1", "5f00::1", "4000::1"),
        *("fe80::1%eth0", "fc00::1", "::", "::1", "64:ff9b::10.0.0.1", "2002:a00:1::", "2001:db8::1", "ff02::1"),
    ],
)
def test_an_address_that_is_none_of_the_internet_is_of_no_receiver(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::", "::ffff:8.8.8.8"]
)
def test_an_address_of_the_internet_may_be_a_receivers(address: str) -> None:
    assert is_public(address)
