"""Admission: what a request may take of what its address, its key and its customers have. Raises `RetryLater`.

Use it on the event loop's thread, except where a method says otherwise.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from services.collector.http.bodies import BodyLimits, RetryLater
from services.collector.http.limits import NO_RATES, Amount, InFlight, RateLimits, RejectedRoom, Share, WastedSeconds
from services.collector.intake.post import ParsedBody, Post, Rejected, Rules
from services.collector.intake.sender.client import Client
from services.collector.intake.sender.customers import Customer
from services.collector.sink.records import RECORD_OVERHEAD_BYTES
from services.rim.telemetry import metrics
from shared.metrics import (
    COLLECTOR_IN_FLIGHT_BYTES,
    COLLECTOR_LIMITED,
    COLLECTOR_REJECTED_DROPPED,
    COLLECTOR_UNSTORED,
)

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
class Demand:
    """What a request asks of its customers' rates."""

    amounts: dict[str, Amount]
    terms: dict[str, Customer]


class Admission:
    """The limits of one process, and what requests have taken of them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rates = RateLimits(limits.customer_rates)
        self._rejected_room = RejectedRoom(limits.rejected_bytes_per_second_max)
        self._in_flight = InFlight(limits.in_flight_bytes_max, limits.party_share_max)
        self._wasted = WastedSeconds(limits.wasted_seconds_per_second)
        metrics.gauge(COLLECTOR_IN_FLIGHT_BYTES).set_function(lambda: self._in_flight.bytes)

    def admit_address(self, address: str) -> None:
        """Raises `RetryLater` while the address is over its limit of wasted CPU time, before a byte of the body is read."""
        if wait := self._wasted.wait_seconds(address, time.monotonic()):
            metrics.counter(COLLECTOR_LIMITED).labels("(address)").inc()
            raise RetryLater("limited", wait)

    def add_waste(self, address: str, seconds: float) -> None:
        """Counts CPU time that a request took beyond what good requests need."""
        self._wasted.add(address, seconds, time.monotonic())

    @contextmanager
    def share(self, parties: tuple[str, ...]) -> Iterator[Share]:
        """What one request holds of the bytes in flight, given back at its end."""
        share = Share(self._in_flight, *parties)
        try:
            yield share
        finally:
            share.give_back()

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

        A size that is announced is taken at once, and what of it has not come in the end is given back. Without one bytes are
        taken as they come: the function counts them, and gives the seconds until more may be read.
        """
        terms = {customer_id: rules.customers.terms(customer_id)} if len(rules.customers) else {}

        def demand(count: int) -> Demand:
            return Demand(dict.fromkeys(terms, Amount(0, count)), terms)

        self.take_rates(demand(size_bytes or 0))
        come = 0

        def charge(count: int) -> float:
            nonlocal come
            come += count
            if size_bytes is not None:
                return 0.0
            for customer in terms:
                self._rates.give_back(customer, -count)
            return self._wait_seconds(demand(0))

        try:
            yield charge
        finally:
            if size_bytes is not None and come < size_bytes:
                self._rates.give_back(customer_id, size_bytes - come)

    def keeps(self, rejected: Rejected, rules: Rules) -> bool:
        """Whether there is room for a rejected input in topic `rejected`; what is not kept is counted. Safe to use from threads."""
        # An unknown key may equal the id of a customer, and still belongs to no customer.
        is_listed = rejected.reason != "unknown_customer" and rules.customers.lists(rejected.customer_id)
        size = len(rejected.value) + RECORD_OVERHEAD_BYTES
        is_kept = self._rejected_room.take_bytes(size, is_listed=is_listed, now_seconds=time.monotonic())
        if not is_kept:
            metrics.counter(COLLECTOR_REJECTED_DROPPED).labels(rejected.reason).inc()
        return is_kept

    def _wait_seconds(self, demand: Demand | None) -> float:
        if demand is None:
            return 0.0
        return self._rates.wait_seconds(demand.amounts, demand.terms, time.monotonic())

    def _limited(self, demand: Demand | None, wait: float) -> RetryLater:
        amounts = demand.amounts if demand else {}
        for customer_id, amount in amounts.items():
            metrics.counter(COLLECTOR_LIMITED).labels(customer_id).inc(amount.beacons)
        return RetryLater("limited", wait)


def address_of(client: Client) -> str:
    """The party that a request's address is."""
    return f"address {client.site}"


def parties_of(client: Client, key: str = "") -> tuple[str, ...]:
    """The parties that a request's room is charged to: its address and, if it has one, its key."""
    address = address_of(client)
    return (address, f"key {key[:_KEY_CHARS_MAX]}") if key else (address,)


def demand_of(parsed: ParsedBody, post: Post, rules: Rules, cpu_seconds: float) -> Demand | None:
    """What a request asks of its customers' rates; None where any key is a customer.

    A body without an accepted input is charged to the listed customer that it names.
    """
    if not len(rules.customers):
        return None
    counts = Counter(one.customer_id for one in parsed.accepted)
    total = counts.total()
    if not total:
        claimed = {one.customer_id for one in parsed.rejected if one.reason != "unknown_customer"}
        mine = [one for one in claimed if one is not None and rules.customers.lists(one)][:1]
        amounts = {one: Amount(0, len(post.body), cpu_seconds * 1_000) for one in mine}
    else:
        amounts = {
            customer_id: Amount(count, len(post.body) * count // total, cpu_seconds * 1_000 * count / total)
            for customer_id, count in counts.items()
        }
    return Demand(amounts, {customer_id: rules.customers.terms(customer_id) for customer_id in amounts})
