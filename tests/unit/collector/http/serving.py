"""A collector that listens, with a sink in memory."""

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import aiohttp

from services.collector.admission.bounds import BodyLimits, Limits
from services.collector.http.app import make_app, make_runner
from services.collector.http.connections import ConnectionLimits
from services.collector.http.finishing import Drain
from services.collector.http.listener import Listener
from services.collector.http.reception import Reception
from services.collector.http.recordings.routes import RecordingRoutes
from services.collector.http.recordings.uploads import UploadLimits, Uploads
from services.collector.http.routes import Routes
from services.collector.http.senders import Clients
from services.collector.intake.post import Rules
from services.collector.received.counting import Counts
from services.collector.sink.sink import MemorySink
from services.rim.telemetry.tracing import Traces
from shared.codec import BEACON
from shared.topics import PROFILES
from tests.unit.collector.intake.bodies import RECV_TIME_MS

RULES = Rules(collector_id="c-1", body_bytes_max=10_000)
#: A bucket of this rate holds ten times as much.
REJECTED_BYTES_PER_SECOND = 5_000


BODIES = BodyLimits(seconds_max=0.3, bytes_per_second_min=1.0, slow_by_address_max=100, slow_by_key_max=100)
CONNECTIONS = ConnectionLimits()
UPLOADS = UploadLimits(
    payload_bytes_max=20_000_000,
    uploads_max=3,
    chunks_max=4,
    chunk_seconds_max=0.3,
    uploads_by_customer_max=3,
    uploads_by_address_max=3,
)
PROXIES = [ip_network("127.0.0.0/8")]


class Served:
    """A collector that listens on a port of its own, and a client to it."""

    def __init__(
        self,
        body_seconds_max: float = 0.3,
        *,
        connections: ConnectionLimits = CONNECTIONS,
        handshake_seconds: float = 0.0,
        traces: Traces | None = None,
        bodies: BodyLimits | None = None,
        party_share_max: float = 1.0,
        wasted_seconds_per_second: float = 1_000.0,
        address_requests_per_second: float = 1e6,
        in_flight_bytes_max: int = 100_000,
        uploads: UploadLimits = UPLOADS,
        cpu_seconds: Callable[[], float] = time.thread_time,
    ) -> None:
        self._connections = connections
        self._handshake_seconds = handshake_seconds
        self.sink = MemorySink()
        self.counts = Counts("c-1", 1)
        self.drain = Drain()
        self.rules = RULES
        limits = Limits(
            bodies=bodies or replace(BODIES, seconds_max=body_seconds_max),
            in_flight_bytes_max=in_flight_bytes_max,
            party_share_max=party_share_max,
            wasted_seconds_per_second=wasted_seconds_per_second,
            address_requests_per_second=address_requests_per_second,
            throttle_seconds_max=0.05,
            rejected_bytes_per_second_max=REJECTED_BYTES_PER_SECOND,
        )
        reception = self.reception = Reception(
            lambda: self.rules,
            Clients(PROXIES),
            PROFILES["laptop"],
            limits,
            now_ms=lambda: RECV_TIME_MS,
            traces=traces,
            received=self.counts,
            cpu_seconds=cpu_seconds,
        )
        upload_numbers = itertools.count()
        routes = Routes(reception, self.sink, self.sink, new_session_id=lambda: "new-session")
        self.uploads = Uploads(self.sink, PROFILES["laptop"], uploads, new_id=lambda: f"u{next(upload_numbers)}")
        self.runner = make_runner(
            make_app(routes, RecordingRoutes(reception, self.uploads), self.drain), drain_seconds_max=5.0
        )
        self.port = 0
        self.client: aiohttp.ClientSession

    async def start(self) -> None:
        self.listener = Listener(self.runner, "127.0.0.1", 0, self._connections, self._handshake_seconds)
        self.port = self.listener.port
        await self.listener.start()
        self.client = aiohttp.ClientSession(f"http://127.0.0.1:{self.port}")

    async def stop(self) -> None:
        await self.client.close()
        await self.listener.close()

    async def raw(self, request: bytes) -> bytes:
        """The head of the answer to bytes written on a connection of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        finally:
            writer.close()
            await writer.wait_closed()

    def stored(self) -> list[tuple[str, Any]]:
        return [
            (record.topic, BEACON.decode(record.value) if record.topic == "beacons" else dict(record.headers))
            for record in self.sink.records
        ]


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)
