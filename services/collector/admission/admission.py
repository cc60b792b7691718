"""Admission: what a request may take of what its address, its key and its customers have. Raises `RetryLater`.

Use it on the event loop's thread, except for methods marked as safe to use from threads.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from services.collector.admission.bounds import Limits
from services.collector.admission.held import InFlight, Share
from services.collector.admission.known_views import KnownViews
from services.collector.admission.rates import (
    BURST_SECONDS,
    WASTE_BURST_SECONDS,
    AddressRates,
    Amount,
    RateLimits,
    RejectedRoom,
    customer_of_subject,
    key_subject,
)
from services.collector.admission.retry_later import RetryLater
from services.collector.customers.usage import Usage
from services.collector.intake.post import ParsedBody, Post, Rejected, Rules
from services.collector.intake.sender.client import Client, site_of
from services.collector.intake.sender.customers import Customer, Found, KeyLimits
from services.collector.sink.records import RECORD_OVERHEAD_BYTES
from services.rim.telemetry import metrics
from shared.http.peer import PEERS_REMEMBERED_MAX
from shared.metrics import (
    COLLECTOR_IN_FLIGHT_BYTES,
    COLLECTOR_LIMITED,
    COLLECTOR_REJECTED_DROPPED,
    COLLECTOR_UNSTORED,
)
from shared.schemas.apis.call import ApiCall
from shared.schemas.beacon import Beacon
from shared.schemas.span import Span

_KEY_CHARS_MAX: Final = 64
#: By what customers' rates count inputs.
_KINDS: Final = {Beacon: "beacons", Span: "spans", ApiCall: "calls"}


@dataclass(frozen=True)
class Demand:
    """What a request asks of its customers' rates."""

    #: By customer id; of keys that have limits of their own by `key_subject`.
    amounts: dict[str, Amount]
    terms: dict[str, Customer | KeyLimits]
    #: Hashes of the views that become known once the demand is met.
    new_views: frozenset[int] = frozenset()


class Admission:
    """The limits of one process, and what requests have taken of them."""

    def __init__(self, limits: Limits, usage: Usage | None = None) -> None:
        self._limits = limits
        self._rates = RateLimits(limits.customer_rates, usage)
        self._rejected_room = RejectedRoom(limits.rejected_bytes_per_second_max)
        self._in_flight = InFlight(limits.in_flight_bytes_max, limits.party_share_max)
        self._wasted_ms = AddressRates(limits.wasted_seconds_per_second * 1_000, WASTE_BURST_SECONDS)
        self._requests = AddressRates(limits.address_requests_per_second, BURST_SECONDS)
        self._known_views = KnownViews()
        metrics.gauge(COLLECTOR_IN_FLIGHT_BYTES).set_function(lambda: self._in_flight.bytes)

    def set_stored(self, stored: Mapping[str, float]) -> None:
        """What customers have stored of their day at all collectors, bytes by customer id."""
        self._rates.set_stored(stored, time.monotonic())

    def admit_address(self, address: str) -> None:
        """Counts a request of the address, before a byte of its body is read.

        Raises `RetryLater` while the address is over its rate of requests or of wasted CPU time.
        """
        now = time.monotonic()
        wasted = self._wasted_ms.wait_seconds(address, now)
        if wasted:
            self._check_address(max(wasted, self._requests.wait_seconds(address, now)))
        self._check_address(self._requests.take_if_free(address, 1, now))

    def check_waste(self, address: str) -> None:
        """Raises `RetryLater` if other requests of the address have wasted too much since this one was admitted.

        Bodies of one address that are received at the same time would otherwise all be parsed.
        """
        self._check_address(self._wasted_ms.wait_seconds(address, time.monotonic()))

    def add_waste(self, address: str, seconds: float) -> bool:
        """Counts CPU time that a request took beyond what good requests need; False if the address has wasted too much now."""
        now = time.monotonic()
        if seconds:
            self._wasted_ms.take_amount(address, seconds * 1_000, now)
        return not self._wasted_ms.wait_seconds(address, now)

    def share(self, parties: tuple[str, ...]) -> Share:
        """What one request holds of the bytes in flight: a context, at whose end it is given back."""
        return Share(self._in_flight, *parties)

    def hold(self, share: Share, size_bytes: int) -> None:
        """Lets the request hold so many bytes. Raises `RetryLater` where there is no room for them."""
        if not share.grow_to(size_bytes):
            metrics.counter(COLLECTOR_UNSTORED).labels("in_flight").inc()
            raise RetryLater("busy")

    def take_rates(self, demand: Demand | None, seconds_max: float = 0.0) -> float:
        """0 if the demand was taken from its customers' rates; else seconds until it can be, at most `seconds_max`.

        Raises `RetryLater` if it takes longer.
        """
        wait = self._wait_seconds(demand)
        if wait > seconds_max:
            raise self._limited(demand, wait)
        return wait

    async def hold_back(self, demand: Demand | None, wait: float) -> None:
        """Returns once the customers' rates allow the request; raises `RetryLater` when that takes too long."""
        deadline = time.monotonic() + self._limits.throttle_seconds_max
        while wait:
            await asyncio.sleep(wait)
            wait = self._wait_seconds(demand)
            if time.monotonic() + wait > deadline:
                raise self._limited(demand, wait)

    @property
    def throttle_seconds_max(self) -> float:
        """How long a request may be held back."""
        return self._limits.throttle_seconds_max

    @contextmanager
    def charging(self, customer_id: str, size_bytes: int | None, rules: Rules) -> Iterator[Callable[[int], float]]:
        """Counts the bytes of a payload, which holds no beacons, against a customer's rate. Raises `RetryLater` beyond it.

        Bytes are taken as they come: what a client announces takes nothing from others. The function counts them, and gives the
        seconds until more may be read.
        """
        terms: dict[str, Customer | KeyLimits] = {}
        if not rules.customers.takes_any:
            terms[customer_id] = rules.customers.terms(customer_id)
        demand = Demand(dict.fromkeys(terms, Amount(recordings=1)), terms)
        self.take_rates(demand)
        come = 0

        def charge(count: int) -> float:
            nonlocal come
            come += count
            for customer in terms:
                self._rates.take_bytes(customer, count)
            # A payload that says its size passes whole, as any request does: it waits for what others have taken alone.
            own = come if size_bytes is not None else 0
            return max((self._rates.debt_seconds(one, own, time.monotonic()) for one in terms), default=0.0)

        try:
            yield charge
        except RetryLater as refused:
            # Bytes that came too fast for too long.
            if refused.kind == "limited":
                self._limited(demand, refused.wait_seconds)
            raise

    def keeps(self, rejected: Rejected, rules: Rules) -> bool:
        """Whether there is room for a rejected input in topic `rejected`; what is not kept is counted. Safe to use from threads."""
        # An unknown key may equal the id of a customer, and still belongs to no customer.
        is_listed = rejected.reason != "unknown_customer" and rules.customers.lists(rejected.customer_id)
        size = len(rejected.value) + RECORD_OVERHEAD_BYTES
        is_kept = self._rejected_room.take_bytes(size, is_listed=is_listed, now_seconds=time.monotonic())
        if not is_kept:
            metrics.counter(COLLECTOR_REJECTED_DROPPED).labels(rejected.reason).inc()
        return is_kept

    def demand_of(self, parsed: ParsedBody, post: Post, rules: Rules, cpu_seconds: float) -> Demand | None:
        """What a request asks of its customers' rates; None where any key is a customer.

        A body without an accepted input is charged to the listed customer that it names.
        """
        if rules.customers.takes_any:
            return None
        size_bytes, cpu_ms = len(post.body), cpu_seconds * 1_000
        counts = Counter(one.customer_id for one in parsed.accepted)
        total = counts.total()
        new_views: frozenset[int] = frozenset()
        if total:
            kind = _KINDS[type(parsed.accepted[0])]
            amounts = {
                customer_id: Amount(size_bytes * count // total, cpu_ms * count / total, **{kind: count})
                for customer_id, count in counts.items()
            }
            if kind == "beacons":
                amounts, new_views = self._with_new_views(parsed, amounts)
        else:
            claimed = {one.customer_id for one in parsed.rejected if one.reason != "unknown_customer"}
            mine = [one for one in claimed if one is not None and rules.customers.lists(one)][:1]
            amounts = {one: Amount(size_bytes, cpu_ms) for one in mine}
        terms: dict[str, Customer | KeyLimits] = {one: rules.customers.terms(one) for one in amounts}
        if total and rules.customers.has_limited_keys:
            for key, count in parsed.by_key or ((post.key, total),):
                limits, found = rules.customers.limits(key), rules.customers.find(key)
                if limits is not None and isinstance(found, Found):
                    subject = key_subject(found.id, key)
                    amounts[subject] = Amount(size_bytes * count // total, **{kind: count})
                    terms[subject] = limits
        return Demand(amounts, terms, new_views)

    def _with_new_views(
        self, parsed: ParsedBody, amounts: dict[str, Amount]
    ) -> tuple[dict[str, Amount], frozenset[int]]:
        views: dict[str, set[tuple[str, str]]] = {customer_id: set() for customer_id in amounts}
        # In one pass: a body may be of thousands of customers.
        for one in parsed.accepted:
            if isinstance(one, Beacon):
                views[one.customer_id].add((one.customer_id, one.view_id))
        unknown: set[int] = set()
        for customer_id, amount in amounts.items():
            new = self._known_views.unknown(views[customer_id])
            if new:
                amounts[customer_id] = replace(amount, new_views=len(new))
                unknown |= new
        return amounts, frozenset(unknown)

    def _wait_seconds(self, demand: Demand | None) -> float:
        if demand is None:
            return 0.0
        wait = self._rates.wait_seconds(demand.amounts, demand.terms, time.monotonic())
        if not wait:
            self._known_views.remember(demand.new_views)
        return wait

    def _check_address(self, wait: float) -> None:
        if wait:
            metrics.counter(COLLECTOR_LIMITED).labels("(address)").inc()
            raise RetryLater("limited", wait)

    def _limited(self, demand: Demand | None, wait: float) -> RetryLater:
        amounts = demand.amounts if demand else {}
        for subject, amount in amounts.items():
            if (customer_id := customer_of_subject(subject)) != subject:
                # The customer's own amount has them too.
                continue
            inputs = amount.beacons + amount.spans + amount.calls + amount.recordings
            metrics.counter(COLLECTOR_LIMITED).labels(customer_id).inc(inputs)
        if demand is not None:
            self._rates.count_refused(amounts, demand.terms, time.monotonic())
        return RetryLater("limited", wait)


@lru_cache(PEERS_REMEMBERED_MAX)
def party_of(address: str | None) -> str:
    """The party that an address is."""
    return f"address {site_of(address)}"


def parties_of(client: Client, key: str = "") -> tuple[str, ...]:
    """The parties that a request's room is charged to: its address and, if it has one, its key."""
    address = party_of(client.address)
    return (address, f"key {key[:_KEY_CHARS_MAX]}") if key else (address,)
