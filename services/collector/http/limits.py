"""What one process takes on: token buckets by customer and for rejected inputs, bytes in flight. Pure: time is an argument."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from services.collector.intake.sender.customers import Customer

#: A bucket holds what its rate gives in so long: players send every ten seconds.
BURST_SECONDS: Final = 10.0


@dataclass(slots=True)
class _Bucket:
    """Tokens at a rate. It may run into debt by one request, so that a request larger than the bucket passes too."""

    rate: float
    tokens: float
    at_seconds: float

    def wait_seconds(self, now_seconds: float) -> float:
        """How long until something may be taken; 0: now."""
        self.tokens = min(self.tokens + (now_seconds - self.at_seconds) * self.rate, _capacity(self.rate))
        self.at_seconds = now_seconds
        return 0.0 if self.tokens >= 1 else (1.0 - self.tokens) / self.rate


@dataclass(frozen=True)
class Amount:
    """What a request asks of one customer's buckets."""

    beacons: int
    size_bytes: int


class RateLimits:
    """The buckets of customers that have limits. A customer whose rates change starts with full buckets."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def wait_seconds(self, amounts: Mapping[str, Amount], terms: Mapping[str, Customer], now_seconds: float) -> float:
        """0 when the amounts, by customer id, were taken from the buckets; else seconds until it is worth asking again."""
        wanted: list[tuple[_Bucket, int]] = []
        for customer_id, amount in amounts.items():
            for kind, rate, tokens in (
                ("beacons", terms[customer_id].beacons_per_second, amount.beacons),
                ("bytes", terms[customer_id].bytes_per_second, amount.size_bytes),
            ):
                if rate is not None:
                    wanted.append((self._bucket((customer_id, kind), rate, now_seconds), tokens))
        wait = max((bucket.wait_seconds(now_seconds) for bucket, _ in wanted), default=0.0)
        if wait == 0.0:
            for bucket, tokens in wanted:
                bucket.tokens -= tokens
        return wait

    def _bucket(self, name: tuple[str, str], rate: float, now_seconds: float) -> _Bucket:
        bucket = self._buckets.get(name)
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[name] = _Bucket(rate, _capacity(rate), now_seconds)
        return bucket


class RejectedRoom:
    """How much may go into topic `rejected`: so many bytes a second from listed customers, and as many from all others.

    Whoever makes keys up can so neither fill the topic nor crowd out what a customer's broken player sends.
    """

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._buckets: dict[bool, _Bucket] = {}

    def take(self, size_bytes: int, *, is_listed: bool, now_seconds: float) -> bool:
        """Whether an input of so many bytes is to be kept; if so it counts."""
        bucket = self._buckets.get(is_listed)
        if bucket is None:
            bucket = self._buckets[is_listed] = _Bucket(self._rate, _capacity(self._rate), now_seconds)
        if bucket.wait_seconds(now_seconds):
            return False
        bucket.tokens -= size_bytes
        return True


class InFlight:
    """Bytes that requests hold which are not yet answered: of their bodies, and of the records made of them."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes = 0

    def take(self, size_bytes: int) -> bool:
        """Whether there is room for so many more; if so they count until given back."""
        if self.bytes + size_bytes > self._bytes_max:
            return False
        self.bytes += size_bytes
        return True

    def give_back(self, size_bytes: int) -> None:
        """They are answered."""
        self.bytes -= size_bytes


class Share:
    """What one request holds of the bytes in flight."""

    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self._bytes = 0

    def grow_to(self, size_bytes: int) -> bool:
        """Whether there is room for the request to hold so many; it never shrinks."""
        more = size_bytes - self._bytes
        if more <= 0:
            return True
        if not self._in_flight.take(more):
            return False
        self._bytes = size_bytes
        return True

    def give_back(self) -> None:
        """The request is answered."""
        self._in_flight.give_back(self._bytes)
        self._bytes = 0


def _capacity(rate: float) -> float:
    return max(1.0, rate * BURST_SECONDS)
