"""Rates of one process, by customer and by address: buckets of tokens. Pure: time is an argument."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from services.collector.customers.usage import Usage
from services.collector.intake.sender.customers import Customer, KeyLimits

#: A bucket holds the tokens of so many seconds: players send every ten seconds.
BURST_SECONDS: Final = 10.0
#: The same for wasted CPU time of an address: less, since it delays all others.
WASTE_BURST_SECONDS: Final = 1.0
ADDRESSES_REMEMBERED_MAX: Final = 8_192
NO_RATES: Final = Customer()


@dataclass(slots=True)
class _Bucket:
    """Tokens at a rate. It may run into debt by one request, so that a request larger than the bucket passes too."""

    rate: float
    tokens: float
    at_seconds: float
    burst_seconds: float = BURST_SECONDS

    def wait_seconds(self, now_seconds: float, besides: float = 0.0) -> float:
        """How long until something may be taken; 0: now. `besides`: tokens that were taken and do not count."""
        return max(0.0, (1.0 - self._filled(now_seconds) - besides) / self.rate)

    def taken(self, now_seconds: float) -> float:
        """Tokens that it lacks."""
        return self._capacity - self._filled(now_seconds)

    def _filled(self, now_seconds: float) -> float:
        self.tokens = min(self.tokens + (now_seconds - self.at_seconds) * self.rate, self._capacity)
        self.at_seconds = now_seconds
        return self.tokens

    @property
    def _capacity(self) -> float:
        return max(1.0, self.rate * self.burst_seconds)


@dataclass(frozen=True)
class Amount:
    """The amounts that a request takes from one customer's buckets."""

    size_bytes: int = 0
    #: CPU time that reading it took.
    cpu_ms: float = 0.0
    beacons: int = 0
    spans: int = 0
    calls: int = 0
    recordings: int = 0
    #: Views of which this process has seen no beacon lately.
    new_views: int = 0


DAY_SECONDS: Final = 86_400.0
#: The rate that all collectors fill one bucket of together, where they report what customers store.
STORED: Final = "bytes_per_day"
#: What is taken from a bucket, the customer's rate that fills it, the seconds of that rate, and for how many a burst may last.
_RATES: Final = (
    ("size_bytes", "bytes_per_second", 1.0, BURST_SECONDS),
    ("size_bytes", STORED, DAY_SECONDS, DAY_SECONDS),
    ("cpu_ms", "cpu_ms_per_second", 1.0, BURST_SECONDS),
    ("beacons", "beacons_per_second", 1.0, BURST_SECONDS),
    ("spans", "spans_per_second", 1.0, BURST_SECONDS),
    ("calls", "calls_per_second", 1.0, BURST_SECONDS),
    ("recordings", "recordings_per_minute", 60.0, BURST_SECONDS),
    ("new_views", "new_views_per_second", 1.0, BURST_SECONDS),
)
#: Names of the rates that a customer may have.
LIMITED: Final = tuple(name for _, name, _, _ in _RATES)
#: The buckets of bytes.
_OF_BYTES: Final = tuple(name for kind, name, _, _ in _RATES if kind == "size_bytes")
#: Checked for every request, also one that takes nothing of them: a customer in debt waits.
_OF_EVERY_REQUEST: Final = frozenset({"size_bytes", "cpu_ms"})


def key_subject(customer_id: str, key: str) -> str:
    """What the buckets of a key with limits of its own are found by; a customer's own by its id."""
    return f"{customer_id} {key}"


def customer_of_subject(subject: str) -> str:
    """Whose bucket it is: ids have no blanks."""
    return subject.partition(" ")[0]


@dataclass(frozen=True)
class _Wanted:
    """What a request takes of one bucket."""

    customer_id: str
    name: str
    bucket: _Bucket
    tokens: float


class RateLimits:
    """The buckets of customers. A customer whose rates change starts with full buckets, but for what it has stored of its day.

    `defaults` are the rates of customers that have none of their own. `usage` counts what is stored and what is refused, where that
    is reported.
    """

    def __init__(self, defaults: Customer = NO_RATES, usage: Usage | None = None) -> None:
        self._defaults = defaults
        self._usage = usage
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        #: What customers had stored at all collectors, bytes, and when that was heard.
        self._stored: dict[str, tuple[float, float]] = {}

    def wait_seconds(
        self, amounts: Mapping[str, Amount], terms: Mapping[str, Customer | KeyLimits], now_seconds: float
    ) -> float:
        """0 when the amounts, by customer id, were taken from the buckets; else seconds until it is worth asking again."""
        wanted = list(self._wanted(amounts, terms, now_seconds))
        wait = max((one.bucket.wait_seconds(now_seconds) for one in wanted), default=0.0)
        if wait == 0.0:
            for one in wanted:
                one.bucket.tokens -= one.tokens
                if one.name == STORED:
                    self._count_stored(one.customer_id, one.tokens, one.bucket)
        return wait

    def count_refused(
        self, amounts: Mapping[str, Amount], terms: Mapping[str, Customer | KeyLimits], now_seconds: float
    ) -> None:
        """Counts a request that is refused now under each limit that its customers are beyond."""
        if self._usage is None:
            return
        for one in self._wanted(amounts, terms, now_seconds):
            if one.bucket.wait_seconds(now_seconds):
                self._usage.add_refused(customer_of_subject(one.customer_id), one.name, one.tokens)

    def take_bytes(self, customer_id: str, size_bytes: int) -> None:
        """Takes bytes that have come from the customer's buckets, also where these hold less."""
        for name in _OF_BYTES:
            bucket = self._buckets.get((customer_id, name))
            if bucket is not None:
                bucket.tokens -= size_bytes
                if name == STORED:
                    self._count_stored(customer_id, size_bytes, bucket)

    def debt_seconds(self, customer_id: str, own_bytes: int, now_seconds: float) -> float:
        """How long the customer's buckets of bytes are in debt, without these bytes that were taken of them."""
        buckets = (self._buckets.get((customer_id, name)) for name in _OF_BYTES)
        return max((one.wait_seconds(now_seconds, own_bytes) for one in buckets if one is not None), default=0.0)

    def set_stored(self, stored: Mapping[str, float], now_seconds: float) -> None:
        """From now on these customers have stored so many bytes of their day, besides those that `usage` has not reported."""
        for customer_id, size_bytes in stored.items():
            self._stored[customer_id] = size_bytes, now_seconds
            bucket = self._buckets.get((customer_id, STORED))
            if bucket is not None:
                bucket.tokens = self._room(customer_id, bucket.rate, now_seconds)
                bucket.at_seconds = now_seconds

    def _wanted(
        self, amounts: Mapping[str, Amount], terms: Mapping[str, Customer | KeyLimits], now_seconds: float
    ) -> Iterator[_Wanted]:
        for customer_id, amount in amounts.items():
            own = terms[customer_id]
            for kind, name, seconds, burst_seconds in _RATES:
                tokens = getattr(amount, kind)
                if not tokens and kind not in _OF_EVERY_REQUEST:
                    continue
                rate = getattr(own, name, None)
                if rate is None and isinstance(own, Customer):
                    rate = getattr(self._defaults, name)
                if rate is not None:
                    bucket = self._bucket((customer_id, name), rate / seconds, now_seconds, burst_seconds)
                    yield _Wanted(customer_id, name, bucket, tokens)

    def _bucket(self, key: tuple[str, str], rate: float, now_seconds: float, burst_seconds: float) -> _Bucket:
        former = self._buckets.get(key)
        if former is not None and former.rate == rate:
            return former
        customer_id, name = key
        tokens = max(1.0, rate * burst_seconds)
        if name == STORED and self._usage is not None:
            tokens = self._room(customer_id, rate, now_seconds)
        elif name == STORED and former is not None:
            tokens -= former.taken(now_seconds)
        bucket = self._buckets[key] = _Bucket(rate, tokens, now_seconds, burst_seconds)
        return bucket

    def _room(self, customer_id: str, rate: float, now_seconds: float) -> float:
        """Bytes that the customer may still store of its day, as far as is known."""
        stored, at_seconds = self._stored.get(customer_id, (0.0, now_seconds))
        drained = max(0.0, stored - rate * (now_seconds - at_seconds))
        unsent_bytes = 0.0 if self._usage is None else self._usage.unsent_bytes(customer_id)
        return max(1.0, rate * DAY_SECONDS) - drained - unsent_bytes

    def _count_stored(self, customer_id: str, size_bytes: float, bucket: _Bucket) -> None:
        if size_bytes and self._usage is not None:
            self._usage.add_stored(customer_id, size_bytes, bucket.rate * DAY_SECONDS)


class RejectedRoom:
    """How much may go into topic `rejected`: so many bytes a second from listed customers, and as many from all others.

    Invented keys can neither fill the topic nor crowd out what a customer's broken player sends. Safe to use from threads.
    """

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._buckets: dict[bool, _Bucket] = {}
        self._lock = threading.Lock()

    def take_bytes(self, size_bytes: int, *, is_listed: bool, now_seconds: float) -> bool:
        """Whether an input of so many bytes is to be kept; if so it counts."""
        with self._lock:
            bucket = self._buckets.get(is_listed)
            if bucket is None:
                bucket = self._buckets[is_listed] = _Bucket(self._rate, _capacity(self._rate), now_seconds)
            if bucket.wait_seconds(now_seconds):
                return False
            bucket.tokens -= size_bytes
            return True


class AddressRates:
    """A rate for each address: of requests, or of CPU time beyond what good requests need.

    Only the addresses that asked last are remembered; of too many the one whose last request is oldest is forgotten.
    """

    def __init__(self, rate: float, burst_seconds: float) -> None:
        self._rate = rate
        self._burst_seconds = burst_seconds
        self._buckets: dict[str, _Bucket] = {}

    def wait_seconds(self, address: str, now_seconds: float) -> float:
        """How long until a request of this address is read again; 0: now."""
        bucket = self._buckets.get(address)
        return bucket.wait_seconds(now_seconds) if bucket is not None else 0.0

    def take_amount(self, address: str, amount: float, now_seconds: float) -> None:
        """Counts so much against the address."""
        bucket = self._newest(address, now_seconds)
        bucket.wait_seconds(now_seconds)
        bucket.tokens -= amount

    def take_if_free(self, address: str, amount: float, now_seconds: float) -> float:
        """0 where so much was counted against the address; else how long until a request of it is read again."""
        bucket = self._newest(address, now_seconds)
        wait = bucket.wait_seconds(now_seconds)
        if not wait:
            bucket.tokens -= amount
        return wait

    def _newest(self, address: str, now_seconds: float) -> _Bucket:
        """The address's bucket, which is now the last that is forgotten."""
        bucket = self._buckets.pop(address, None)
        if bucket is None:
            if len(self._buckets) >= ADDRESSES_REMEMBERED_MAX:
                del self._buckets[next(iter(self._buckets))]
            full = max(1.0, self._rate * self._burst_seconds)
            bucket = _Bucket(self._rate, full, now_seconds, self._burst_seconds)
        self._buckets[address] = bucket
        return bucket


def _capacity(rate: float) -> float:
    return max(1.0, rate * BURST_SECONDS)
