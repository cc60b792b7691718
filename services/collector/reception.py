"""One request from its bytes to its records in the sink: the path that every client's route shares.

A `Refusal` says that nothing was stored (or that nobody knows); how a client hears of it is its route's business.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import structlog
from aiohttp import web

from services.collector.clients import Clients
from services.collector.intake.post import Post, Rules, Taken
from services.collector.limits import Amount, InFlight, RateLimits
from services.collector.records import records_of
from services.collector.sink import Sink, Unstored
from services.rim import metrics
from shared.metrics import (
    COLLECTOR_BEACONS_ACCEPTED,
    COLLECTOR_IN_FLIGHT_BYTES,
    COLLECTOR_LIMITED,
    COLLECTOR_PRODUCE_SECONDS,
    COLLECTOR_REJECTED,
    COLLECTOR_UNSTORED,
)
from shared.schemas.beacon import Source
from shared.topics import Profile

log = structlog.get_logger(__name__)

#: `slow`: the body did not come in time. `gone`: the client broke off. `busy`: too many bytes in flight. `limited`: more
#: than its customer's rate. `unstored`: the sink does not have it, or nobody knows.
RefusalKind = Literal["slow", "gone", "busy", "limited", "unstored"]

Take = Callable[[Post, Rules], Taken]


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


class Reception:
    """Reads, understands and stores requests."""

    def __init__(
        self, rules: Callable[[], Rules], clients: Clients, profile: Profile, limits: Limits, now_ms: Callable[[], int]
    ) -> None:
        self.rules = rules
        self._clients = clients
        self._profile = profile
        self._limits = limits
        self._now_ms = now_ms
        self._rates = RateLimits()
        self._in_flight = InFlight(limits.in_flight_bytes_max)
        metrics.gauge(COLLECTOR_IN_FLIGHT_BYTES).set_function(lambda: self._in_flight.bytes)
        self._batch_numbers = itertools.count()
        sources: tuple[Source, ...] = ("mux", "cmcd", "epas", "native")
        self._accepted = {source: metrics.counter(COLLECTOR_BEACONS_ACCEPTED).labels(source) for source in sources}
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
    ) -> Taken:
        """What the request held, all of it stored. `patient` holds back what is beyond its customer's rate.

        Raises `Refusal`.
        """
        held = [0]
        try:
            body, whole = await self._body(request, held)
            post = self.post(request, body, key=key, whole=whole, in_seconds=in_seconds)
            return await self.store(post, take, source, sink, patient=patient)
        finally:
            self._in_flight.give_back(held[0])

    async def store(self, post: Post, take: Take, source: Source, sink: Sink, *, patient: bool = False) -> Taken:
        """What `post` holds, stored; raises `Refusal`."""
        rules = self.rules()
        taken = take(post, rules)
        if len(rules.customers):
            await self._within_rates(taken, post, rules, patient=patient)
        records = records_of(taken, post, self._profile)
        begun = time.perf_counter()
        try:
            await sink.store(records)
        except Unstored as unstored:
            metrics.counter(COLLECTOR_UNSTORED).labels(unstored.reason).inc(len(records))
            raise Refusal("unstored") from unstored
        self._produce_seconds.observe(time.perf_counter() - begun)
        self._accepted[source].inc(len(taken.accepted))
        if taken.rejected:
            for reason, count in Counter(rejected.reason for rejected in taken.rejected).items():
                metrics.counter(COLLECTOR_REJECTED).labels(reason).inc(count)
        return taken

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

    async def _within_rates(self, taken: Taken, post: Post, rules: Rules, *, patient: bool) -> None:
        """Returns once the customers' rates allow the request; raises `Refusal` when that takes too long."""
        counts = Counter(beacon.customer_id for beacon in taken.accepted)
        total = counts.total()
        amounts = {customer_id: Amount(count, len(post.body) * count // total) for customer_id, count in counts.items()}
        terms = {customer_id: rules.customers.terms(customer_id) for customer_id in counts}
        deadline = time.monotonic() + self._limits.throttle_seconds_max
        while wait := self._rates.wait_seconds(amounts, terms, now := time.monotonic()):
            if not patient or now + wait > deadline:
                metrics.counter(COLLECTOR_LIMITED).labels(max(counts, key=lambda name: counts[name])).inc(total)
                raise Refusal("limited", wait)
            await asyncio.sleep(wait)

    async def _body(self, request: web.Request, held: list[int]) -> tuple[bytes, bool]:
        """The body, and whether it is the whole of it: at most `body_bytes_max` bytes, in at most `body_seconds_max`.

        What `held` counts is in flight. A body of known length finds its room before the first byte is waited for.
        """
        bytes_max = self.rules().body_bytes_max
        content = request.content
        self._hold(min(request.content_length or 0, bytes_max), held)
        chunks = [content.read_nowait()]
        size = len(chunks[0])
        if not content.is_eof():
            try:
                async with asyncio.timeout(self._limits.body_seconds_max):
                    while size <= bytes_max and (chunk := await content.readany()):
                        chunks.append(chunk)
                        size += len(chunk)
                        self._hold(size, held)
            except TimeoutError:
                log.warning("body_too_slow", path=request.path, seconds_max=self._limits.body_seconds_max)
                raise Refusal("slow") from None
            except (web.RequestPayloadError, ConnectionError):
                # Nobody hears the answer.
                raise Refusal("gone") from None
        self._hold(size, held)
        body = b"".join(chunks) if len(chunks) > 1 else chunks[0]
        return body[:bytes_max], size <= bytes_max

    def _hold(self, size: int, held: list[int]) -> None:
        more = size - held[0]
        if more <= 0:
            return
        if not self._in_flight.take(more):
            metrics.counter(COLLECTOR_UNSTORED).labels("in_flight").inc()
            raise Refusal("busy")
        held[0] = size
