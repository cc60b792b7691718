"""Reception: takes one request from its bytes to its records in the sink. All routes of clients use it.

A `Refusal` says that nothing was stored, or that the outcome is unknown. The client's route turns it into an answer.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple, get_args

import structlog
from aiohttp import web

from services.collector.http.bodies import Bodies, BodyLimits, Refusal
from services.collector.http.clients import Clients
from services.collector.http.limits import NO_RATES, Amount, InFlight, RateLimits, RejectedRoom, Share, WastedSeconds
from services.collector.http.turns import TooManyWaiting, Turns
from services.collector.intake.body import small, unpacked_bytes_max
from services.collector.intake.post import Outcome, Post, Rejected, Rules, Taken
from services.collector.intake.sender.client import Client
from services.collector.intake.sender.customers import Customer
from services.collector.sink.records import RECORD_OVERHEAD_BYTES, Headers, Record, records_of, size_of
from services.collector.sink.sink import Sink, Unstored
from services.rim.telemetry import metrics
from services.rim.telemetry.tracing import HEADER, Traces
from shared.metrics import (
    COLLECTOR_BEACONS_ACCEPTED,
    COLLECTOR_IN_FLIGHT_BYTES,
    COLLECTOR_LIMITED,
    COLLECTOR_PRODUCE_SECONDS,
    COLLECTOR_REJECTED,
    COLLECTOR_REJECTED_DROPPED,
    COLLECTOR_UNSTORED,
)
from shared.topics import Profile

log = structlog.get_logger(__name__)

Take = Callable[[Post, Rules], Taken]

#: What requests are counted by: the clients of beacons, and the other inputs.
Source = Literal["mux", "cmcd", "epas", "native", "otlp", "api"]


#: Bodies of so many bytes, unpacked, are read on the event loop: even a hostile one takes a few ms. Larger ones take turns
#: on a thread. Of what clients send nearly all is smaller.
_INLINE_BYTES: Final[dict[Source, int]] = {
    "mux": 32_768,
    "epas": 32_768,
    "cmcd": 16_384,
    "native": 16_384,
    "otlp": 16_384,
    "api": 2_048,
}
#: CPU time that a good input takes at the most, and a byte of a body, in seconds. What takes longer is waste.
_INPUT_SECONDS: Final[dict[Source, float]] = {
    "mux": 50e-6,
    "epas": 100e-6,
    "cmcd": 50e-6,
    "native": 50e-6,
    "otlp": 100e-6,
    "api": 1e-3,
}
_BYTE_SECONDS: Final = 0.05e-6
_REQUEST_SECONDS: Final = 200e-6
#: Large bodies that wait for their turn: of one address, and of all.
LARGE_WAITING_BY_ADDRESS_MAX: Final = 8
LARGE_WAITING_MAX: Final = 256
_KEY_CHARS_MAX: Final = 64


@dataclass(frozen=True)
class Limits:
    """What bounds a request besides the intake's rules."""

    bodies: BodyLimits
    in_flight_bytes_max: int
    #: Of the bytes in flight, what one address, and one key, may hold.
    party_share_max: float
    #: CPU time that an address may waste.
    wasted_seconds_per_second: float
    #: How long a request may be held back that is beyond its customer's rate.
    throttle_seconds_max: float
    rejected_bytes_per_second_max: float
    #: The rates of listed customers that have none of their own.
    customer_rates: Customer = NO_RATES


@dataclass(frozen=True)
class _Demand:
    """What a request asks of its customers' rates."""

    amounts: dict[str, Amount]
    terms: dict[str, Customer]


class _Ready(NamedTuple):
    """A request that was read: its records, and how long it is to be held back."""

    records: list[Record]
    rejected: list[Rejected]
    outcome: Outcome
    demand: _Demand | None
    wait_seconds: float


#: Runs a function: here, or on a thread.
_Run = Callable[..., Awaitable[Any]]


async def _here(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


class Reception:
    """Reads, parses and stores requests."""

    def __init__(
        self,
        rules: Callable[[], Rules],
        clients: Clients,
        profile: Profile,
        limits: Limits,
        now_ms: Callable[[], int],
        *,
        traces: Traces | None = None,
        cpu_seconds: Callable[[], float] = time.thread_time,
    ) -> None:
        self.rules = rules
        self._clients = clients
        self._profile = profile
        self._limits = limits
        self._now_ms = now_ms
        self._traces = traces
        self._cpu_seconds = cpu_seconds
        self._rates = RateLimits(limits.customer_rates)
        self._rejected_room = RejectedRoom(limits.rejected_bytes_per_second_max)
        self._in_flight = InFlight(limits.in_flight_bytes_max, limits.party_share_max)
        self._wasted = WastedSeconds(limits.wasted_seconds_per_second)
        self._turns = Turns(LARGE_WAITING_BY_ADDRESS_MAX, LARGE_WAITING_MAX)
        self._bodies = Bodies(limits.bodies)
        metrics.gauge(COLLECTOR_IN_FLIGHT_BYTES).set_function(lambda: self._in_flight.bytes)
        self._batch_numbers = itertools.count()
        accepted = metrics.counter(COLLECTOR_BEACONS_ACCEPTED)
        self._accepted = {source: accepted.labels(source) for source in get_args(Source)}
        self._produce_seconds = metrics.histogram(COLLECTOR_PRODUCE_SECONDS)

    async def receive(
        self,
        request: web.Request,
        take: Take,
        source: Source,
        sink: Sink,
        *,
        key: str = "",
        patient: bool = False,
        in_seconds: bool = False,
    ) -> Outcome:
        """The content of the request, all of it stored. `patient` delays requests beyond their customer's rate.

        Raises `Refusal`.
        """
        client = self._clients.of(request)
        parties = _parties(client, key)
        self._admit_address(parties[0])
        share = Share(self._in_flight, *parties)
        try:
            hold = partial(self._hold, share)
            body, whole = await self._bodies.read(request, self.rules().body_bytes_max, parties, hold)
            post = self._post(request, client, body, key=key, whole=whole, in_seconds=in_seconds)
            return await self._store(post, take, source, sink, share, patient=patient)
        finally:
            share.give_back()

    async def receive_query(self, request: web.Request, take: Take, source: Source, sink: Sink, *, key: str) -> Outcome:
        """What the query string held, stored. Raises `Refusal`."""
        client = self._clients.of(request)
        parties = _parties(client, key)
        self._admit_address(parties[0])
        share = Share(self._in_flight, *parties)
        try:
            post = self._post(request, client, request.query_string.encode("utf-8", "replace"), key=key)
            return await self._store(post, take, source, sink, share)
        finally:
            share.give_back()

    async def _store(
        self, post: Post, take: Take, source: Source, sink: Sink, share: Share, *, patient: bool = False
    ) -> Outcome:
        """What became of `post`, once its records are stored; traced, where it is sampled."""
        if self._traces is None:
            return await self._store_records(post, take, source, sink, share, patient=patient)
        with self._traces.request(f"POST {source}", body_bytes=len(post.body)) as traceparent:
            outcome = await self._store_records(
                post, take, source, sink, share, patient=patient, traceparent=traceparent
            )
            if traceparent is not None:
                log.info("traced_post", source=source, accepted=outcome.accepted, rejected=len(outcome.rejected))
            return outcome

    async def _store_records(
        self,
        post: Post,
        take: Take,
        source: Source,
        sink: Sink,
        share: Share,
        *,
        patient: bool,
        traceparent: str | None = None,
    ) -> Outcome:
        """What became of `post`, once its records are stored.

        One body at a time is decompressed and parsed, here or on the thread. Its parsed form, many times its size, is freed before
        any other wait. The decompressed bytes count as in flight before they are parsed.
        """
        rules = self.rules()
        headers: Headers = [] if traceparent is None else [(HEADER, traceparent)]
        light = small(post, rules, _INLINE_BYTES[source])
        if light is not None:
            if light.unpacked is not None:
                self._hold(share, len(post.body) + len(light.unpacked))
            ready = await self._made_ready(
                light, take, source, share, rules=rules, headers=headers, patient=patient, run=_here
            )
        else:
            try:
                async with self._turns.turn(_parties(post.client)[0]):
                    self._hold(share, len(post.body) + unpacked_bytes_max(post, rules))
                    ready = await self._made_ready(
                        post,
                        take,
                        source,
                        share,
                        rules=rules,
                        headers=headers,
                        patient=patient,
                        run=asyncio.to_thread,
                    )
            except TooManyWaiting:
                metrics.counter(COLLECTOR_UNSTORED).labels("waiting_turns").inc()
                raise Refusal("busy") from None
        if ready.wait_seconds:
            await self._hold_back(ready.demand, ready.wait_seconds)
        begun = time.perf_counter()
        try:
            await sink.store(ready.records)
        except Unstored as unstored:
            metrics.counter(COLLECTOR_UNSTORED).labels(unstored.reason).inc(len(ready.records))
            raise Refusal("unstored") from unstored
        self._produce_seconds.observe(time.perf_counter() - begun)
        self._accepted[source].inc(len(ready.records) - len(ready.rejected))
        for each in ready.rejected:
            metrics.counter(COLLECTOR_REJECTED).labels(each.reason).inc()
        return ready.outcome

    async def _made_ready(
        self,
        post: Post,
        take: Take,
        source: Source,
        share: Share,
        *,
        rules: Rules,
        headers: Headers,
        patient: bool,
        run: _Run,
    ) -> _Ready:
        """What `post` was read into, within its customers' rates and the bytes in flight. Raises `Refusal`."""
        taken, cpu_seconds = await run(self._timed, take, post, rules)
        self._charge_waste(post, source, len(taken.accepted), cpu_seconds)
        demand = _demand(taken, post, rules, cpu_seconds) if len(rules.customers) else None
        wait = self._wait_seconds(demand)
        if wait > (self._limits.throttle_seconds_max if patient else 0):
            raise self._limited(demand, wait)
        rejected: list[Rejected] = []
        records = await run(
            records_of, taken, post, self._profile, lambda each: self._keeps(each, rules, rejected), headers
        )
        self._hold(share, len(post.body) + size_of(records))
        return _Ready(records, rejected, Outcome(len(taken.accepted), taken.rejected), demand, wait)

    def _timed(self, take: Take, post: Post, rules: Rules) -> tuple[Taken, float]:
        """What the POST holds, and the CPU time in seconds that this thread took for it."""
        begun = self._cpu_seconds()
        taken = take(post, rules)
        return taken, self._cpu_seconds() - begun

    def _admit_address(self, party: str) -> None:
        """Raises `Refusal` while the address is over its limit of wasted CPU time, before a byte of the body is read."""
        if wait := self._wasted.wait_seconds(party, time.monotonic()):
            metrics.counter(COLLECTOR_LIMITED).labels("(address)").inc()
            raise Refusal("limited", wait)

    def _charge_waste(self, post: Post, source: Source, accepted: int, cpu_seconds: float) -> None:
        worth = _REQUEST_SECONDS + accepted * _INPUT_SECONDS[source] + len(post.body) * _BYTE_SECONDS
        if cpu_seconds > worth:
            self._wasted.add(_parties(post.client)[0], cpu_seconds - worth, time.monotonic())

    @contextmanager
    def charging(self, customer_id: str, size_bytes: int | None) -> Iterator[Callable[[int], float]]:
        """Counts the bytes of a payload, which is no beacons, against a customer's rate. Raises `Refusal` beyond it.

        A size that is announced is taken at once, and what of it has not come in the end is given back. Without one bytes are
        taken as they come: the function counts them, and gives the seconds until more may be read.
        """
        rules = self.rules()
        terms = {customer_id: rules.customers.terms(customer_id)} if len(rules.customers) else {}

        def taken(count: int) -> tuple[_Demand, float]:
            demand = _Demand(dict.fromkeys(terms, Amount(0, count)), terms)
            return demand, self._wait_seconds(demand)

        demand, wait = taken(size_bytes or 0)
        if wait:
            raise self._limited(demand, wait)
        come = 0

        def charge(count: int) -> float:
            nonlocal come
            come += count
            if size_bytes is not None:
                return 0.0
            for customer in terms:
                self._rates.give_back(customer, -count)
            return taken(0)[1]

        try:
            yield charge
        finally:
            if size_bytes is not None and come < size_bytes:
                self._rates.give_back(customer_id, size_bytes - come)

    def post(self, request: web.Request, *, key: str) -> Post:
        """The request as the intake sees it, without its body."""
        return self._post(request, self._clients.of(request), b"", key=key)

    def _post(
        self,
        request: web.Request,
        client: Client,
        body: bytes,
        *,
        key: str,
        whole: bool = True,
        in_seconds: bool = False,
    ) -> Post:
        headers = request.headers
        recv_time_ms = self._now_ms()
        return Post(
            origin=request.path,
            body=body,
            whole=whole,
            content_type=headers.get("Content-Type", ""),
            content_encoding=headers.get("Content-Encoding", ""),
            key=key,
            recv_time_ms=recv_time_ms,
            client=client,
            in_seconds=in_seconds,
            batch_id=f"{recv_time_ms:x}-{next(self._batch_numbers):x}",
        )

    def _keeps(self, rejected: Rejected, rules: Rules, kept: list[Rejected]) -> bool:
        """Whether a rejected input is kept; if so it is put into `kept`. What is not is counted."""
        # An unknown key may equal the id of a customer, and still belongs to no customer.
        is_listed = rejected.reason != "unknown_customer" and rules.customers.lists(rejected.customer_id)
        size = len(rejected.value) + RECORD_OVERHEAD_BYTES
        if not self._rejected_room.take(size, is_listed=is_listed, now_seconds=time.monotonic()):
            metrics.counter(COLLECTOR_REJECTED_DROPPED).labels(rejected.reason).inc()
            return False
        kept.append(rejected)
        return True

    def _wait_seconds(self, demand: _Demand | None) -> float:
        if demand is None:
            return 0.0
        return self._rates.wait_seconds(demand.amounts, demand.terms, time.monotonic())

    async def _hold_back(self, demand: _Demand | None, wait: float) -> None:
        """Returns once the customers' rates allow the request; raises `Refusal` when that takes too long."""
        deadline = time.monotonic() + self._limits.throttle_seconds_max
        while wait:
            await asyncio.sleep(wait)
            wait = self._wait_seconds(demand)
            if time.monotonic() + wait > deadline:
                raise self._limited(demand, wait)

    def _limited(self, demand: _Demand | None, wait: float) -> Refusal:
        amounts = demand.amounts if demand else {}
        for customer_id, amount in amounts.items():
            metrics.counter(COLLECTOR_LIMITED).labels(customer_id).inc(amount.beacons)
        return Refusal("limited", wait)

    def _hold(self, share: Share, size_bytes: int) -> None:
        if not share.grow_to(size_bytes):
            metrics.counter(COLLECTOR_UNSTORED).labels("in_flight").inc()
            raise Refusal("busy")


def _parties(client: Client, key: str = "") -> tuple[str, ...]:
    """Whom a request's room and time are charged to: its address and, if it has one, its key."""
    address = f"address {client.site}"
    return (address, f"key {key[:_KEY_CHARS_MAX]}") if key else (address,)


def _demand(taken: Taken, post: Post, rules: Rules, cpu_seconds: float) -> _Demand:
    """A body without an accepted input is charged to the listed customer that it names."""
    counts = Counter(one.customer_id for one in taken.accepted)
    total = counts.total()
    if not total:
        claimed = {one.customer_id for one in taken.rejected if one.reason != "unknown_customer"}
        mine = [one for one in claimed if one is not None and rules.customers.lists(one)][:1]
        amounts = {one: Amount(0, len(post.body), cpu_seconds * 1_000) for one in mine}
    else:
        amounts = {
            customer_id: Amount(count, len(post.body) * count // total, cpu_seconds * 1_000 * count / total)
            for customer_id, count in counts.items()
        }
    return _Demand(amounts, {customer_id: rules.customers.terms(customer_id) for customer_id in amounts})
