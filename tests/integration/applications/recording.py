"""Session recordings whose truth is known: sent until they are stored, and what has become of them."""

import asyncio
import hashlib
import io
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import aiohttp

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from shared import codec, topics
from shared.schemas.recording import RecordingRow
from tests.integration.collector.collecting import Collector
from tests.integration.parts.feed import committed
from tests.integration.parts.lookup_slots import LookupSlot

SEND_SECONDS_MAX = 120.0
CUSTOMER = "acme"
#: Uploads of a sender at a time; of payloads larger than this only two, for the sender's own memory.
AT_ONCE = 8
_LARGE_BYTES = 10_000_000


@dataclass(frozen=True)
class Payload:
    """One payload, made from its name each time."""

    session: str
    sequence: int
    size_bytes: int

    @property
    def content(self) -> bytes:
        return random.Random(f"{self.session}/{self.sequence}").randbytes(self.size_bytes)

    @cached_property
    def name(self) -> str:
        """Of its object."""
        return f"{CUSTOMER}/{self.session}/{self.sequence:06d}-{hashlib.sha256(self.content).hexdigest()[:32]}"


def made_payloads(count: int, sessions: int, largest_bytes: int, seed: int = 3) -> list[Payload]:
    """Mixed sizes, 10 KB and up: most are small, one in a hundred (and one at least) is up to the largest."""
    random_ = random.Random(seed)
    next_of: dict[str, int] = defaultdict(int)
    payloads = []
    for number in range(count):
        kind = random_.random()
        if number == count // 2:
            size = largest_bytes
        elif kind < 0.01:
            size = random_.randint(min(5_000_000, largest_bytes), largest_bytes)
        elif kind < 0.1:
            size = random_.randint(300_000, min(5_000_000, largest_bytes))
        else:
            size = int(10_000 * 30 ** random_.random())
        session = f"s-{random_.randrange(sessions)}"
        payloads.append(Payload(session, next_of[session], size))
        next_of[session] += 1
    return payloads


class Sender(threading.Thread):
    """Posts payloads, neighbours out of order, until each is answered 200; some once more after that."""

    def __init__(self, url: str, payloads: Sequence[Payload], seed: int = 3) -> None:
        super().__init__(name="sender")
        self._url = url
        self._random = random.Random(seed)
        self._left = list(payloads)
        for start in range(0, len(self._left), 4):
            window = self._left[start : start + 4]
            self._random.shuffle(window)
            self._left[start : start + 4] = window
        self._left.reverse()
        self.stored = 0
        self.stored_bytes = 0
        self.tries = 0
        self.repeated = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self.failure = error
            raise

    def finish(self, seconds: float) -> None:
        self.join(seconds)
        assert not self.is_alive(), f"stored only {self.stored} within {seconds} s, {len(self._left)} not begun"
        assert self.failure is None, self.failure

    async def _run(self) -> None:
        self._few = asyncio.Semaphore(2)
        timeout = aiohttp.ClientTimeout(total=SEND_SECONDS_MAX)
        async with aiohttp.ClientSession(timeout=timeout, headers={"Authorization": f"Bearer {CUSTOMER}"}) as client:
            await asyncio.gather(*(self._worker(client) for _ in range(AT_ONCE)))

    async def _worker(self, client: aiohttp.ClientSession) -> None:
        while self._left:
            payload = self._left.pop()
            if payload.size_bytes > _LARGE_BYTES:
                async with self._few:
                    await self._send(client, payload)
            else:
                await self._send(client, payload)

    async def _send(self, client: aiohttp.ClientSession, payload: Payload) -> None:
        content = payload.content
        while not await self._posted(client, payload, content):  # noqa: ASYNC110 - a client's pause between tries
            await asyncio.sleep(0.2)
        self.stored += 1
        self.stored_bytes += payload.size_bytes
        if self._random.random() < 0.05 and await self._posted(client, payload, content):
            self.repeated += 1

    async def _posted(self, client: aiohttp.ClientSession, payload: Payload, content: bytes) -> bool:
        self.tries += 1
        url = f"{self._url}/recordings/{payload.session}?sequence={payload.sequence}"
        try:
            async with client.post(url, data=io.BytesIO(content)) as answer:
                body = await answer.read()
                assert answer.status in {200, 408, 503}, (answer.status, body)
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


#: Group members that die are noticed soon, and no gap is given up.
QUICK = {
    "PROCESSOR_APPLICATION": "recordings",
    "PROCESSOR_SESSION_MS": "2000",
    "RECORDINGS_GAP_MS": "3600000",
}


class Scene:
    """A broker with a collector and slots that share one object store."""

    def __init__(self, broker: Broker, folder: Path, ending: ExitStack) -> None:
        self.broker = broker
        self.folder = folder
        self.objects = folder / "objects"
        self._ending = ending
        folder.mkdir(exist_ok=True)
        self.collector = ending.enter_context(Collector(broker.bootstrap, folder, free_port()))

    def slot(self, number: int = 0, **environ: str) -> LookupSlot:
        """Another slot, started."""
        server = LookupSlot(
            self.broker, self.folder, number, **(QUICK | {"PROCESSOR_OBJECTS": str(self.objects)} | environ)
        )
        self._ending.callback(server.slot.end)
        server.slot.start()
        return server

    def send(self, payloads: list[Payload]) -> Sender:
        sender = Sender(self.collector.url, payloads)
        sender.start()
        return sender


def index_rows(bootstrap: str) -> list[RecordingRow]:
    """All committed rows of topic `recording_index`."""
    return [codec.RECORDING.decode(message.value() or b"") for message in committed(bootstrap, topics.RECORDING_INDEX)]


def expect_stored(bootstrap: str, objects: Path, payloads: Sequence[Payload], seconds: float) -> None:
    """Waits until every payload is reported as stored; then all are there once, in order, byte for byte, and nothing else is."""
    wanted = {payload.name for payload in payloads}
    deadline = time.monotonic() + seconds
    while True:
        rows = index_rows(bootstrap)
        missing = wanted - {row.object for row in rows}
        if not missing:
            break
        assert time.monotonic() < deadline, f"{len(missing)} not reported within {seconds} s: {sorted(missing)[:5]}"
        time.sleep(0.5)
    assert {row.state for row in rows} == {"stored"}, [row for row in rows if row.state != "stored"][:5]
    assert len(rows) == len(wanted), f"{len(rows) - len(wanted)} reported twice"
    sequences_of: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        sequences_of[row.session_id].append(row.sequence)
    assert all(sequences == list(range(len(sequences))) for sequences in sequences_of.values()), "not in order"
    by_name = {row.object: row for row in rows}
    for payload in payloads:
        content, row = payload.content, by_name[payload.name]
        assert (objects / payload.name).read_bytes() == content, f"{payload.name} has other bytes"
        assert (row.size_bytes, row.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    files = {str(path.relative_to(objects)) for path in objects.rglob("*") if path.is_file() and "#" not in path.name}
    assert files == wanted, f"objects nobody has sent: {sorted(files - wanted)[:5]}"


async def posted_at_once(url: str, payloads: Sequence[Payload]) -> list[int]:
    """The statuses of all payloads, posted at the same time."""
    timeout = aiohttp.ClientTimeout(total=600)
    headers = {"Authorization": f"Bearer {CUSTOMER}"}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as client:

        async def post(payload: Payload) -> int:
            to = f"{url}/recordings/{payload.session}?sequence={payload.sequence}"
            async with client.post(to, data=io.BytesIO(payload.content)) as answer:
                return answer.status

        return await asyncio.gather(*(post(payload) for payload in payloads))


async def streamed_back(url: str, token: str, session: str) -> list[tuple[int, bytes]]:
    """A session as a lookup streams it: number and bytes of each part."""
    headers = {"Authorization": f"Bearer {token}"}
    found = []
    address = f"{url}/recordings/{session}?customer={CUSTOMER}"
    async with aiohttp.ClientSession(headers=headers) as client, asyncio.timeout(SEND_SECONDS_MAX):
        while True:
            async with client.get(address) as answer:
                if answer.status != 503:
                    assert answer.status == 200, await answer.read()
                    parts = aiohttp.MultipartReader.from_response(answer)
                    while (part := await parts.next()) is not None:
                        assert isinstance(part, aiohttp.BodyPartReader)
                        found.append((int(part.headers["Playhead-Sequence"]), bytes(await part.read())))
                    return found
            # Its partition is on its way to another slot.
            await asyncio.sleep(0.2)


def when(condition: Callable[[], bool], what: str, seconds: float = SEND_SECONDS_MAX) -> None:
    """Waits for a condition that another thread brings about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
