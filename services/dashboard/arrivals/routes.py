"""`/v1/arrivals?customer=...`: the newest beacons of a customer, and what was rejected."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

import msgspec
from aiohttp import web

from services.accounts.http.access import VIEWS_OF_ONE, Routing
from services.accounts.http.guard import principal_of
from services.dashboard.arrivals.picture import Arrivals, AskedArrivals, picture
from services.dashboard.arrivals.reading import BACK_SECONDS, ArrivalsAway, Newest
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import TOO_MANY_QUESTIONS, problem_response
from services.rim.turns.question_limits import InTurn, TooManyQuestions
from shared.http.problems import Problem

T = TypeVar("T")

#: What was read answers everybody who asks so soon after.
_FRESH_MS: Final = 1_000
#: Questions of one organisation: one after another, and so many may wait. A picture of a busy customer takes 36 ms of CPU.
QUESTIONS_MAX: Final = 16
#: Pictures that are made at a time for all organisations: threads are shared with what checks passwords.
_AT_ONCE_MAX: Final = 2
#: Pictures of one read that are kept for others who ask alike.
PICTURES_MAX: Final = 50
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
        #: The one that is under way, with all who wait for it.
        self._reading: asyncio.Task[tuple[int, Newest]] | None = None
        self._read: tuple[int, Newest] | None = None
        self._questions = InTurn(at_once=1, most=QUESTIONS_MAX)
        self._turns = asyncio.Semaphore(_AT_ONCE_MAX)
        self._making: set[asyncio.Task[Any]] = set()
        #: Of the read that is kept: the answers by customer, key, and whether an operator asks; those used last.
        self._made: OrderedDict[_Asked, bytes] = OrderedDict()

    def add_to(self, routing: Routing) -> None:
        """Adds the route."""
        routing.get("/v1/arrivals", self.arrivals, VIEWS_OF_ONE, name="arrivals")

    async def arrivals(self, request: web.Request) -> web.Response:
        """What has come for one `customer`."""
        try:
            asked = msgspec.convert(dict(request.query), AskedArrivals, strict=False)
        except msgspec.ValidationError as error:
            return problem_response(Problem(400, "The question is wrong", "question", str(error)))
        principal = principal_of(request)
        one: _Asked = (asked.customer, asked.key, principal.operates)
        try:
            body = self._kept(one)
            if body is None:
                body = await self._made_in_turn(one, principal.organisation_id)
        except TooManyQuestions:
            return problem_response(TOO_MANY_QUESTIONS)
        except ArrivalsAway:
            return problem_response(Problem(503, "Kafka does not answer", "kafka-away"))
        return web.Response(body=body, content_type="application/json")

    async def newest(self) -> tuple[int, Newest]:
        """When the newest records were read, and they: shared by all who ask within a second. Raises `ArrivalsAway`."""
        if self._read is not None and self._is_fresh(self._now_ms()):
            return self._read
        if self._reading is None:
            self._reading = self._outliving(self._read_now())
        return await asyncio.shield(self._reading)

    async def _read_now(self) -> tuple[int, Newest]:
        try:
            now_ms = self._now_ms()
            self._read = (now_ms, await asyncio.to_thread(self._reader.newest, now_ms))
            self._made.clear()
            return self._read
        finally:
            self._reading = None

    def _is_fresh(self, now_ms: int) -> bool:
        return self._read is not None and now_ms - self._read[0] <= _FRESH_MS

    def _kept(self, one: "_Asked") -> bytes | None:
        """The answer, if it is made already and the read is still that of now."""
        if not self._is_fresh(self._now_ms()) or (body := self._made.get(one)) is None:
            return None
        self._made.move_to_end(one)
        return body

    async def _made_in_turn(self, one: "_Asked", organisation_id: str) -> bytes:
        """The answer. Raises `TooManyQuestions` or `ArrivalsAway`."""

        async def make() -> bytes:
            async with self._questions.of(organisation_id):
                return await self._picture(one)

        return await asyncio.shield(self._outliving(make()))

    def _outliving(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """What goes on without those who asked: a thread cannot be stopped, so its turn lasts until it is done."""
        making = asyncio.create_task(work)
        self._making.add(making)
        making.add_done_callback(self._forget)
        return making

    def _forget(self, making: asyncio.Task[Any]) -> None:
        self._making.discard(making)
        if not making.cancelled():
            # Nobody may be there any more to look at it.
            making.exception()

    async def _picture(self, one: "_Asked") -> bytes:
        """The answer. Raises `ArrivalsAway`."""
        read = await self.newest()
        async with self._turns:
            if read is self._read and (body := self._made.get(one)) is not None:
                return body
            body = await asyncio.to_thread(_encoded, one, *read)
        if read is self._read:
            self._made[one] = body
            while len(self._made) > PICTURES_MAX:
                self._made.popitem(last=False)
        return body


#: A customer, a write key, and whether an operator asks.
_Asked = tuple[str, str, bool]


def _encoded(one: _Asked, at_ms: int, found: Newest) -> bytes:
    customer, key, is_operator = one
    drawn = picture(
        customer,
        found.beacons,
        found.rejected,
        now_ms=at_ms,
        seconds=BACK_SECONDS,
        is_cut=found.is_cut,
        is_operator=is_operator,
        key=key,
    )
    return msgspec.json.encode(drawn)
