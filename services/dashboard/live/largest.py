"""LargestCustomers: which customers the live picture shows separately, bucket by bucket. Pure; bounded."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from shared.schemas.live import Live

#: Customers whose size is known, shown or not. Beyond it the smaller half is forgotten, and found again when it sends.
KNOWN_MAX: Final = 100_000


@dataclass(slots=True)
class _Size:
    """The viewers of one customer in its newest bucket, and in the one before."""

    bucket_ms: int
    viewers: int = 0
    previous: int = 0


class LargestCustomers:
    """The `customers_max` customers with the most viewers. Membership changes only between two buckets.

    A bucket keeps the members that it began with, so that every record of a customer in one bucket counts in one place. While
    there is room, a new customer becomes a member at once.
    """

    def __init__(self, customers_max: int) -> None:
        self._customers_max = customers_max
        self._sizes: dict[str, _Size] = {}
        self._members: set[str] = set()
        #: bucket → its members; buckets without a change between them share one set
        self._members_of: dict[int, set[str]] = {}
        self._newest_ms: int | None = None

    @property
    def members(self) -> set[str]:
        """The customers that the newest bucket shows apart."""
        return self._members

    def omitted(self, has: Callable[[str], bool] | None = None) -> int:
        """How many customers are known and not shown apart; of those that `has`."""
        found = self._sizes.keys() - self._members
        return len(found) if has is None else sum(map(has, found))

    def is_member(self, customer_id: str, bucket_ms: int) -> bool:
        """Whether the customer is shown apart in this bucket; False for a bucket that is not known."""
        return customer_id in self._members_of.get(bucket_ms, ())

    def count(self, live: Live) -> bool:
        """Counts one record, and returns whether its customer is shown apart in the record's bucket."""
        bucket_ms = live.bucket_ms
        if self._newest_ms is None or bucket_ms > self._newest_ms:
            self._newest_ms = bucket_ms
            self._choose()
        members = self._members_of.setdefault(bucket_ms, self._members)
        if live.customer_id not in members and len(members) < self._customers_max:
            members.add(live.customer_id)
        self._measure(live)
        return live.customer_id in members

    def forget_before(self, oldest_ms: int) -> None:
        """Forgets buckets up to `oldest_ms`, and customers that no later bucket has."""
        for bucket_ms in [known for known in self._members_of if known <= oldest_ms]:
            del self._members_of[bucket_ms]
        gone = {customer_id for customer_id, size in self._sizes.items() if size.bucket_ms <= oldest_ms}
        for customer_id in gone:
            del self._sizes[customer_id]
        if gone & self._members:
            self._members = self._members - gone

    def _measure(self, live: Live) -> None:
        size = self._sizes.get(live.customer_id)
        if size is None:
            size = self._sizes[live.customer_id] = _Size(live.bucket_ms)
        if live.bucket_ms > size.bucket_ms:
            size.bucket_ms, size.previous, size.viewers = live.bucket_ms, size.viewers, 0
        if live.bucket_ms == size.bucket_ms:
            size.viewers += live.viewers_now

    def _choose(self) -> None:
        if len(self._sizes) > KNOWN_MAX:
            kept = {*self._largest(KNOWN_MAX // 2), *self._members}
            self._sizes = {customer_id: size for customer_id, size in self._sizes.items() if customer_id in kept}
        if len(self._sizes) <= self._customers_max:
            return
        chosen = set(self._largest(self._customers_max))
        if chosen != self._members:
            self._members = chosen

    def _largest(self, count: int) -> list[str]:
        """The customers with the most viewers. Of equal ones a present member stays, so that the set changes only with a reason."""

        def rank(customer_id: str) -> tuple[int, bool]:
            size = self._sizes[customer_id]
            return max(size.viewers, size.previous), customer_id in self._members

        return heapq.nlargest(count, self._sizes, key=rank)
