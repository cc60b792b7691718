"""Reception: takes one request from its bytes to its records in the sink. All routes of clients use it.

A `RetryLater` means that nothing was stored, or that the outcome is unknown. The client's route turns it into an answer.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import get_args

import msgspec
import structlog
from aiohttp import web

from services.collector.admission.admission import Admission, parties_of, party_of
from services.collector.admission.bounds import Limits
from services.collector.admission.held import Share
from services.collector.admission.retry_later import RetryLater
from services.collector.customers.usage import Usage
from services.collector.http.bodies import Bodies
from services.collector.http.connections import charge_reading
from services.collector.http.parsing import Input, Parse, Parsing, Source, customer_of
from services.collector.http.senders import Clients
from services.collector.intake.post import Outcome, Post, Rules
from services.collector.intake.sender.client import NO_AGENT, Client
from services.collector.intake.sender.signing import TOKEN_CHARS_MAX
from services.collector.received.counting import Counts
from services.collector.sink.sink import Sink, Unstored
from services.rim.process.garbage import work_seconds
from services.rim.telemetry import metrics
from services.rim.telemetry.tracing import HEADER, Traces
from shared.metrics import COLLECTOR_BEACONS_ACCEPTED, COLLECTOR_PRODUCE_SECONDS, COLLECTOR_REJECTED, COLLECTOR_UNSTORED
from shared.sources import SOURCES
from shared.topics import Profile

log = structlog.get_logger(__name__)


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
        usage: Usage | None = None,
        received: Counts | None = None,
        cpu_seconds: Callable[[], float] = work_seconds,
    ) -> None:
        self.rules = rules
        self._clients = clients
        self._now_ms = now_ms
        self._traces = traces
        self._received = received
        self._admission = Admission(limits, usage)
        self.set_stored = self._admission.set_stored
        self._bodies = Bodies(limits.bodies)
        self._parsing = Parsing(self._admission, profile, cpu_seconds)
        self._batch_numbers = itertools.count()
        accepted = metrics.counter(COLLECTOR_BEACONS_ACCEPTED)
        self._accepted = {source: accepted.labels(source) for source in get_args(Source)}
        self._produce_seconds = metrics.histogram(COLLECTOR_PRODUCE_SECONDS)

    async def receive(
        self,
        request: web.BaseRequest,
        parse: Parse,
        source: Source,
        sink: Sink,
        *,
        key: str = "",
        patient: bool = False,
        in_seconds: bool = False,
    ) -> Outcome:
        """The content of the request, all of it stored. `patient` delays requests beyond their customer's rate.

        Raises `RetryLater`.
        """
        client = self._admitted(request)
        parties = parties_of(client, key)
        with self._admission.share(parties) as share:
            hold = partial(self._admission.hold, share)
            body, whole = await self._bodies.read(request, self.rules().body_bytes_max, parties, hold)
            post = self._post(request, client, body, key=key, whole=whole, in_seconds=in_seconds)
            post = self._with_agent(post, source)
            return await self._store(post, parse, source, sink, share, patient=patient)

    async def receive_query(
        self, request: web.BaseRequest, parse: Parse, source: Source, sink: Sink, *, key: str
    ) -> Outcome:
        """What the query string held, stored. Raises `RetryLater`."""
        client = self._admitted(request)
        parties = parties_of(client, key)
        with self._admission.share(parties) as share:
            post = self._post(request, client, request.query_string.encode("utf-8", "replace"), key=key)
            post = self._with_agent(post, source)
            return await self._store(post, parse, source, sink, share)

    async def _store(
        self, post: Post, parse: Parse, source: Source, sink: Sink, share: Share, *, patient: bool = False
    ) -> Outcome:
        """What became of `post`, once its records are stored; traced, where it is sampled."""
        patience = self._admission.throttle_seconds_max if patient else 0.0
        given = Input(post, parse, source, self.rules(), [], patience)
        if self._traces is None:
            return await self._store_records(given, sink, share)
        with self._traces.request(f"POST {source}", body_bytes=len(post.body)) as traceparent:
            if traceparent is not None:
                given = given._replace(headers=[(HEADER, traceparent)])
            outcome = await self._store_records(given, sink, share)
            if traceparent is not None:
                log.info("traced_post", source=source, accepted=outcome.accepted, rejected=len(outcome.rejected))
            return outcome

    async def _store_records(self, given: Input, sink: Sink, share: Share) -> Outcome:
        ready = await self._parsing.ready(given, share)
        if ready.wait_seconds:
            await self._admission.hold_back(ready.demand, ready.wait_seconds)
        begun = time.perf_counter()
        try:
            await sink.store(ready.records)
        except Unstored as unstored:
            metrics.counter(COLLECTOR_UNSTORED).labels(unstored.reason).inc(len(ready.records))
            raise RetryLater("unstored") from unstored
        self._produce_seconds.observe(time.perf_counter() - begun)
        self._accepted[given.source].inc(len(ready.records) - len(ready.rejected))
        if self._received is not None:
            self._received.add(ready.tally)
        for each in ready.rejected:
            metrics.counter(COLLECTOR_REJECTED).labels(each.reason).inc()
        return ready.outcome

    @contextmanager
    def charging(self, customer_id: str, size_bytes: int | None) -> Iterator[Callable[[int], float]]:
        """`Admission.charging` under the rules in force."""
        with self._admission.charging(customer_id, size_bytes, self.rules()) as charge:
            yield charge

    def post(self, request: web.BaseRequest, *, key: str) -> Post:
        """The request as the intake sees it, without its body. Raises `RetryLater`."""
        return self._post(request, self._admitted(request), b"", key=key)

    def _admitted(self, request: web.BaseRequest) -> Client:
        """Who sent the request, as far as the rates by address admit it: looked at before anything else is."""
        address = self._clients.address_of(request)
        party = party_of(address)
        charge_reading(request, partial(self._admission.add_waste, party))
        self._admission.admit_address(party)
        return self._clients.of(request, address)

    def _with_agent(self, post: Post, source: Source) -> Post:
        """The request with its client's software, where views tell it and it is not remembered."""
        client = post.client
        if client.agent is not NO_AGENT or not client.user_agent or source not in SOURCES:
            return post
        read = self._clients.read_agent(client, customer_of(post, source, self.rules()))
        return msgspec.structs.replace(post, client=read)

    def _post(
        self,
        request: web.BaseRequest,
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
            token=_token_of(request),
            recv_time_ms=recv_time_ms,
            client=client,
            in_seconds=in_seconds,
            batch_id=f"{recv_time_ms:x}-{next(self._batch_numbers):x}",
        )


def _token_of(request: web.BaseRequest) -> str:
    # Few customers sign their views, and a query takes long to parse.
    if "?" not in request.raw_path:
        return ""
    return request.query.get("token", "")[:TOKEN_CHARS_MAX] if "token=" in request.query_string else ""
