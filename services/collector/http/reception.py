"""One request from its bytes to its records in the sink: the path that every client's route shares.

A `Refusal` says that nothing was stored (or that nobody knows); how a client hears of it is its route's business.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import structlog
from aiohttp import web

from services.collector.http.clients import Clients
from services.collector.http.limits import Amount, InFlight, RateLimits, RejectedRoom, Share
from services.collector.intake.post import Outcome, Post, Rejected, Rules, Taken
from services.collector.intake.sender.customers import Customer
from services.collector.sink.records import RECORD_OVERHEAD_BYTES, Headers, records_of, size_of
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

#: `slow`: the body did not come in time. `gone`: the client broke off. `busy`: too many bytes in flight. `limited`: more
#: than its customer's rate. `unstored`: the sink does not have it, or nobody knows.
RefusalKind = Literal["slow", "gone", "busy", "limited", "unstored"]

Take = Callable[[Post, Rules], Taken]

#: What requests are counted by: the clients of beacons, and the other inputs.
Source = Literal["mux", "cmcd", "epas", "native", "otlp", "api"]


class Refusal(RuntimeError):
    """The request is not stored, or not known to be. `wait_seconds`: when to try again, where that is known."""

    def __init__(self, kind: RefusalKind, wait_seconds: float = 0.0) -> None:
        super().__init__(kind)
        self.kind: RefusalKind = kind
        self.wait_seconds = wait_seconds


@dataclass(frozen=True)
class Limits:
    """What bounds a request besides the intake's rules."""

    body_seconds_max: float
    in_flight_bytes_max: int
    #: How long a request may be held back that is beyond its customer's rate.
    throttle_seconds_max: float
    rejected_bytes_per_second_max: float


@dataclass(frozen=True)
class _Demand:
    """What a request asks of its customers' rates."""

    amounts: dict[str, Amount]
    terms: dict[str, Customer]


class Reception:
    """Reads, understands and stores requests."""

    def __init__(
        self,
        rules: Callable[[], Rules],
        clients: Clients,
        profile: Profile,
        limits: Limits,
        now_ms: Callable[[], int],
        *,
        traces: Traces | None = None,
    ) -> None:
        self.rules = rules
        self._clients = clients
        self._profile = profile
        self._limits = limits
        self._now_ms = now_ms
        self._traces = traces
        self._rates = RateLimits()
        self._rejected_room = RejectedRoom(limits.rejected_bytes_per_second_max)
        self._in_flight = InFlight(limits.in_flight_bytes_max)
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
        """What the request held, all of it stored. `patient` holds back what is beyond its customer's rate.

        Raises `Refusal`.
        """
        share = Share(self._in_flight)
        try:
            body, whole = await self._body(request, share)
            post = self.post(request, body, key=key, whole=whole, in_seconds=in_seconds)
            return await self._store(post, take, source, sink, share, patient=patient)
        finally:
            share.give_back()

    async def receive_query(self, request: web.Request, take: Take, source: Source, sink: Sink, *, key: str) -> Outcome:
        """What the query string held, stored. Raises `Refusal`."""
        share = Share(self._in_flight)
        try:
            post = self.post(request, request.query_string.encode("utf-8", "replace"), key=key)
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

        Nothing is awaited before its records are counted as in flight, so one body at a time is unpacked and read;
        what it was read into, many times its size, is gone before anything is waited for.
        """
        rules = self.rules()
        taken = take(post, rules)
        demand = _demand(taken, post, rules) if len(rules.customers) else None
        wait = self._wait_seconds(demand)
        if wait > (self._limits.throttle_seconds_max if patient else 0):
            raise self._limited(demand, wait)
        rejected: list[Rejected] = []
        headers: Headers = [] if traceparent is None else [(HEADER, traceparent)]
        records = records_of(taken, post, self._profile, lambda each: self._keeps(each, rules, rejected), headers)
        outcome = Outcome(len(taken.accepted), taken.rejected)
        del taken
        self._hold(share, len(post.body) + size_of(records))
        if wait:
            await self._hold_back(demand, wait)
        begun = time.perf_counter()
        try:
            await sink.store(records)
        except Unstored as unstored:
            metrics.counter(COLLECTOR_UNSTORED).labels(unstored.reason).inc(len(records))
            raise Refusal("unstored") from unstored
        self._produce_seconds.observe(time.perf_counter() - begun)
        self._accepted[source].inc(len(records) - len(rejected))
        for each in rejected:
            metrics.counter(COLLECTOR_REJECTED).labels(each.reason).inc()
        return outcome

    def admit(self, customer_id: str, size_bytes: int) -> None:
        """Counts bytes that are no beacons against a customer's rate. Raises `Refusal` when they are beyond it."""
        rules = self.rules()
        terms = {customer_id: rules.customers.terms(customer_id)} if len(rules.customers) else {}
        demand = _Demand(dict.fromkeys(terms, Amount(0, size_bytes)), terms)
        if wait := self._wait_seconds(demand):
            raise self._limited(demand, wait)

    def post(
        self, request: web.Request, body: bytes, *, key: str, whole: bool = True, in_seconds: bool = False
    ) -> Post:
        """The request as the intake sees it."""
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
            client=self._clients.of(request),
            in_seconds=in_seconds,
            batch_id=f"{recv_time_ms:x}-{next(self._batch_numbers):x}",
        )

    def _keeps(self, rejected: Rejected, rules: Rules, kept: list[Rejected]) -> bool:
        """Whether a rejected input is kept; if so it is put into `kept`. What is not is counted."""
        # An unknown key may be equal to the id of a customer, and is still nobody's.
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

    async def _body(self, request: web.Request, share: Share) -> tuple[bytes, bool]:
        """The body, and whether it is the whole of it: at most `body_bytes_max` bytes, in at most `body_seconds_max`.

        It is in flight as `share`. A body of known length finds its room before the first byte is waited for.
        """
        bytes_max = self.rules().body_bytes_max
        content = request.content
        self._hold(share, min(request.content_length or 0, bytes_max))
        chunks = [content.read_nowait()]
        size = len(chunks[0])
        if not content.is_eof():
            try:
                async with asyncio.timeout(self._limits.body_seconds_max):
                    while size <= bytes_max and (chunk := await content.readany()):
                        chunks.append(chunk)
                        size += len(chunk)
                        self._hold(share, size)
            except TimeoutError:
                log.warning("body_too_slow", path=request.path, seconds_max=self._limits.body_seconds_max)
                raise Refusal("slow") from None
            except (web.RequestPayloadError, ConnectionError):
                # Nobody hears the answer.
                raise Refusal("gone") from None
        self._hold(share, size)
        body = b"".join(chunks) if len(chunks) > 1 else chunks[0]
        return body[:bytes_max], size <= bytes_max

    def _hold(self, share: Share, size_bytes: int) -> None:
        if not share.grow_to(size_bytes):
            metrics.counter(COLLECTOR_UNSTORED).labels("in_flight").inc()
            raise Refusal("busy")


def _demand(taken: Taken, post: Post, rules: Rules) -> _Demand:
    counts = Counter(one.customer_id for one in taken.accepted)
    total = counts.total()
    return _Demand(
        {customer_id: Amount(count, len(post.body) * count // total) for customer_id, count in counts.items()},
        {customer_id: rules.customers.terms(customer_id) for customer_id in counts},
    )
