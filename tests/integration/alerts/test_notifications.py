"""Sending of messages under attack: receivers that hang, fail, redirect and lie in private networks, and two that send at once."""

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import msgspec
import psycopg
import pytest
from psycopg.types.json import Jsonb

from services.notifications import senders
from services.notifications.mails import Mails
from services.notifications.senders import Senders
from services.notifications.sending import Sending
from services.notifications.settings import NotificationsSettings
from services.rim.database.pool import Postgres as Pool
from tests.integration.alerts.alerting import asked
from tests.integration.collector.collecting import SECONDS_MAX
from tests.unit.alerts.events import event
from tests.unit.webhooks.receiver import SECRET

pytestmark = pytest.mark.integration


class Box:
    """Messages to be sent, by Postgres itself, and what became of them."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._made = 0

    def organisation(self, *customers: str) -> str:
        """An organisation that owns these customers."""
        name = f"Organisation {uuid4().hex}"
        found = f"INSERT INTO accounts.organisations (name) VALUES ('{name}') RETURNING id::text"
        organisation_id: str = asked(self.dsn, found)[0][0]
        for one in customers:
            owned = "INSERT INTO accounts.customers (customer_id, organisation_id)"
            asked(self.dsn, f"{owned} VALUES ('{one}', '{organisation_id}') RETURNING 1")
        return organisation_id

    async def receiver(self, organisation_id: str, kind: str, target: dict[str, Any]) -> str:
        """A receiver, also one that the API would refuse."""
        insert = """
            INSERT INTO alerts.receivers (organisation_id, name, kind, target, changed_by) VALUES (%s, 'r', %s, %s, 'p')
            RETURNING id::text
        """
        return str((await self._run(insert, (organisation_id, kind, Jsonb(target))))[0][0])

    async def message(self, receiver_id: str, customer: str, incident: str, revision: int = 1) -> str:
        """A message that is due; its id."""
        self._made += 1
        one = event("closed" if revision > 1 else "opened", revision, customer_id=customer, incident_id=incident)
        insert = """
            INSERT INTO alerts.deliveries (id, receiver_id, incident_id, revision, event) VALUES (%s, %s, %s, %s, %s) RETURNING id
        """
        values = (f"msg_{self._made}", receiver_id, incident, revision, Jsonb(msgspec.to_builtins(one)))
        return str((await self._run(insert, values))[0][0])

    async def states(self, *ids: str) -> list[str]:
        """What became of messages; of all, where none is named."""
        found = await self._run(
            "SELECT state FROM alerts.deliveries WHERE cardinality(%s::text[]) = 0 OR id = ANY(%s) ORDER BY id",
            (list(ids), list(ids)),
        )
        return [row[0] for row in found]

    async def problem(self, delivery_id: str) -> str:
        """What went wrong with a message."""
        found = await self._run("SELECT problem FROM alerts.deliveries WHERE id = %s", (delivery_id,))
        return str(found[0][0])

    async def _run(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        def run() -> list[tuple[Any, ...]]:
            with psycopg.connect(self.dsn, autocommit=True) as connection:
                return connection.execute(statement, values).fetchall()  # type: ignore[arg-type]

        return await asyncio.to_thread(run)


@asynccontextmanager
async def sending(dsn: str, **given: Any) -> AsyncIterator[None]:
    """The loop that sends, with what is quick."""
    fields = {"postgres_dsn": dsn, "private_receivers": True, "backoff_ms": 1, "backoff_ms_max": 20, "attempts_max": 5}
    settings = NotificationsSettings.model_validate(fields | given)
    # A word that comes late, that a message was delivered, is lost, and the message sent again.
    pool = Pool(dsn, service="test", connections_max=4, seconds_max=SECONDS_MAX, writes=True)
    await pool.open()
    mails = Mails(settings)
    async with senders.session(settings) as session:
        loop = asyncio.create_task(Sending(settings, pool, Senders(settings, session, mails)).run())
        try:
            yield
            assert not loop.done(), loop.exception()
        finally:
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)
            mails.close()
            await pool.close()


async def until(condition: Callable[[], Any], what: str) -> None:
    """Waits for a condition that is asked again and again; fails with `what` when it does not come true in time."""
    deadline = time.monotonic() + SECONDS_MAX
    while not await condition():
        assert time.monotonic() < deadline, f"not within {SECONDS_MAX} s: {what}"
        await asyncio.sleep(0.02)


@contextmanager
def server(answer: Callable[[str, int], tuple[int, str]]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A server; `answer` gives status and location by path and how often the key came before. It keeps (path, key)."""
    got: list[tuple[str, str]] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            key = self.headers["Idempotency-Key"]
            with lock:
                before = sum(one == key for _, one in got)
                got.append((self.path, key))
            status, location = answer(self.path, before)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            if location:
                self.send_header("Location", location)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_address[1]}", got
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


@contextmanager
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


async def test_receivers_that_hang_keep_no_others_messages_waiting(dsn: str) -> None:
    box = Box(dsn)
    slow, quick = box.organisation("slow"), box.organisation("quick")
    with silent() as nowhere, server(lambda _path, _before: (204, "")) as (url, _):
        # Of one organisation many receivers, each with more messages than there is room for in all.
        hanging = [await box.receiver(slow, "slack", {"url": f"{nowhere}/{number}"}) for number in range(15)]
        for one in hanging:
            for number in range(5):
                await box.message(one, "slow", f"slow-{one}-{number}")
        good = await box.receiver(quick, "slack", {"url": url})
        # Nothing of what hangs ends while this test runs.
        async with sending(dsn, messages_max=20, answer_ms_max=60_000):
            late = [await box.message(good, "quick", f"quick-{number}") for number in range(30)]

            async def all_sent() -> bool:
                return set(await box.states(*late)) == {"delivered"}

            await until(all_sent, "the others' messages are delivered")


async def test_a_mail_server_that_hangs_keeps_no_other_message_waiting(dsn: str) -> None:
    box = Box(dsn)
    ours = box.organisation("acme")
    with silent() as nowhere, server(lambda _path, _before: (204, "")) as (url, _):
        mail = await box.receiver(ours, "email", {"to": ["a@x.example"]})
        for number in range(40):
            await box.message(mail, "acme", f"mail-{number}")
        good = await box.receiver(ours, "slack", {"url": url})
        host, port = nowhere.removeprefix("http://").split(":")
        async with sending(dsn, answer_ms_max=60_000, smtp_host=host, smtp_port=int(port), smtp_security="none"):
            late = await box.message(good, "acme", "quick")

            async def is_sent() -> bool:
                # What the process does on threads goes on as well.
                await asyncio.to_thread(lambda: None)
                return await box.states(late) == ["delivered"]

            await until(is_sent, "the message to Slack is delivered")


async def test_what_always_fails_is_dead_and_what_comes_back_is_delivered_in_order(dsn: str) -> None:
    box = Box(dsn)
    ours = box.organisation("acme")

    def answer(path: str, before: int) -> tuple[int, str]:
        return (500 if path == "/never" or before < 3 else 204), ""

    with server(answer) as (url, got):
        never = await box.receiver(ours, "slack", {"url": f"{url}/never"})
        later = await box.receiver(ours, "slack", {"url": f"{url}/later"})
        dead = await box.message(never, "acme", "one")
        ordered = [await box.message(later, "acme", "two", revision) for revision in (1, 2)]
        async with sending(dsn):

            async def is_over() -> bool:
                return "waiting" not in await box.states()

            await until(is_over, "every message is over")
        assert await box.states(dead) == ["dead"]
        assert await box.problem(dead) == "answered 500"
        assert await box.states(*ordered) == ["delivered"] * 2
    tries = Counter(key for _, key in got)
    assert tries == {dead: 5, ordered[0]: 4, ordered[1]: 4}
    assert [key for path, key in got if path == "/later"] == [ordered[0]] * 4 + [ordered[1]] * 4


async def test_a_redirect_to_an_address_within_is_not_followed(dsn: str) -> None:
    box = Box(dsn)
    ours = box.organisation("acme")
    with (
        server(lambda _path, _before: (204, "")) as (within, reached),
        server(lambda path, _before: (int(path[1:]), f"{within}/secret")) as (url, _),
    ):
        ids = []
        for status in (301, 302, 303, 307, 308):
            receiver = await box.receiver(ours, "webhook", {"url": f"{url}/{status}", "secret": SECRET})
            ids.append(await box.message(receiver, "acme", f"redirect-{status}"))
        async with sending(dsn, attempts_max=2):

            async def is_over() -> bool:
                return "waiting" not in await box.states()

            await until(is_over, "every message is over")
        assert await box.states() == ["dead"] * 5
    assert reached == []


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]"),
        *("[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "169.254.169.254", "10.0.0.1"),
    ],
)
async def test_an_address_within_is_refused_however_it_is_written(dsn: str, host: str) -> None:
    box = Box(dsn)
    ours = box.organisation("acme")
    with server(lambda _path, _before: (204, "")) as (url, reached):
        port = url.rpartition(":")[2]
        receiver = await box.receiver(ours, "slack", {"url": f"http://{host}:{port}/"})
        one = await box.message(receiver, "acme", "one")
        async with sending(dsn, private_receivers=False, attempts_max=1):

            async def is_over() -> bool:
                return await box.states() == ["dead"]

            await until(is_over, "the message is dead")
        # The client takes some of them for no address at all.
        unread = "it cannot be made or sent: InvalidUrlClientError"
        assert await box.problem(one) in ("its address is in a private network", unread)
    assert reached == []


async def test_a_receiver_that_cannot_be_sent_to_is_dead_and_holds_up_nobody(dsn: str) -> None:
    box = Box(dsn)
    ours = box.organisation("acme")
    broken: list[tuple[str, dict[str, Any]]] = [
        ("webhook", {"url": "http://127.0.0.1:1/", "secret": "whsec_no base64 at all"}),
        ("webhook", {"secret": SECRET}),
        ("slack", {"url": "http://[::1/"}),
        ("slack", {"url": f"http://{'a' * 70}.example/"}),
        ("slack", {"url": "http://a..b/"}),
        ("slack", {"url": 7}),
        ("email", {"to": ["a@x.example\r\nBcc: b@x.example"]}),
        ("email", {"to": 7}),
    ]
    with server(lambda _path, _before: (204, "")) as (url, got):
        ids = [
            await box.message(await box.receiver(ours, kind, target), "acme", f"broken-{number}")
            for number, (kind, target) in enumerate(broken)
        ]
        good = await box.message(await box.receiver(ours, "slack", {"url": url}), "acme", "good")
        async with sending(dsn, smtp_host="127.0.0.1", attempts_max=2):

            async def is_over() -> bool:
                return "waiting" not in await box.states()

            await until(is_over, "every message is over")
        assert await box.states(*ids) == ["dead"] * len(broken)
        assert await box.states(good) == ["delivered"]
    assert [key for _, key in got] == [good]


async def test_two_that_send_at_once_send_each_message_once_and_in_order(dsn: str) -> None:
    box = Box(dsn)
    ours = box.organisation("acme")
    with server(lambda _path, _before: (204, "")) as (url, got):
        receivers = [await box.receiver(ours, "slack", {"url": f"{url}/{number}"}) for number in range(4)]
        wanted = {
            (f"/{place}", incident): [await box.message(one, "acme", incident, revision) for revision in (1, 2, 3)]
            for place, one in enumerate(receivers)
            for incident in (f"{one}-a", f"{one}-b", f"{one}-c")
        }
        async with sending(dsn), sending(dsn):

            async def is_over() -> bool:
                return "waiting" not in await box.states()

            await until(is_over, "every message is over")
    assert set(Counter(key for _, key in got).values()) == {1}
    for (path, _), ids in wanted.items():
        assert [key for where, key in got if where == path and key in ids] == ids
