"""`/v1/arrivals?customer=...`: the newest beacons of a customer, and what was rejected."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import msgspec
from aiohttp import web

from services.accounts.http.access import VIEWS_OF_ONE, Routing
from services.accounts.http.guard import principal_of
from services.dashboard.arrivals.picture import Arrivals, AskedArrivals, picture
from services.dashboard.arrivals.reading import BACK_SECONDS, ArrivalsAway, Newest
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import problem_response
from shared.http.problems import Problem

#: What was read answers everybody who asks so soon after.
_FRESH_MS: Final = 1_000
OPERATIONS: Final = [
    Operation(
        "/v1/arrivals",
        "The newest beacons of a customer as they came, and what of its input was rejected, for those who integrate a player",
        Arrivals,
        AskedArrivals,
        statuses=(400, *GUARDED),
        tag="live",
    )
]


class Reader(Protocol):
    """Where records come from."""

    def newest(self, now_ms: int) -> Newest:
        """Blocks; raises `ArrivalsAway`."""
        ...


class ArrivalRoutes:
    """HTTP to and from the reader."""

    def __init__(self, reader: Reader, now_ms: Callable[[], int]) -> None:
        self._reader = reader
        self._now_ms = now_ms
        self._reading = asyncio.Lock()
        self._read: tuple[int, Newest] | None = None

    def add_to(self, routing: Routing) -> None:
        """Adds the route."""
        routing.get("/v1/arrivals", self.arrivals, VIEWS_OF_ONE, name="arrivals")

    async def arrivals(self, request: web.Request) -> web.Response:
        """What has come for one `customer`."""
        try:
            asked = msgspec.convert(dict(request.query), AskedArrivals, strict=False)
        except msgspec.ValidationError as error:
            return problem_response(Problem(400, "The question is wrong", "question", str(error)))
        try:
            at_ms, found = await self.newest()
        except ArrivalsAway:
            return problem_response(Problem(503, "Kafka does not answer", "kafka-away"))
        drawn = await asyncio.to_thread(
            picture,
            asked.customer,
            found.beacons,
            found.rejected,
            now_ms=at_ms,
            seconds=BACK_SECONDS,
            is_cut=found.is_cut,
            is_operator=principal_of(request).operates,
            key=asked.key,
        )
        return web.Response(body=msgspec.json.encode(drawn), content_type="application/json")

    async def newest(self) -> tuple[int, Newest]:
        """When the newest records were read, and they: shared by all who ask within a second. Raises `ArrivalsAway`."""
        async with self._reading:
            now_ms = self._now_ms()
            if self._read is None or now_ms - self._read[0] > _FRESH_MS:
                self._read = (now_ms, await asyncio.to_thread(self._reader.newest, now_ms))
            return self._read
