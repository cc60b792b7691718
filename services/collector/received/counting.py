"""Counts what is received of each customer, and what of it is rejected, by release, until it is reported. Pure, bounded."""

from collections.abc import Iterator
from typing import Final, cast

from services.collector.intake.body import beginning
from services.collector.intake.mux.names import key_in
from services.collector.intake.post import ParsedBody, Post, Rejected, Rules
from services.collector.intake.sender.customers import Found
from services.collector.received.releases import LOOKED_AT_BYTES, Releases, View, release_in, release_of, view_in
from shared.schemas.beacon import Beacon
from shared.schemas.live import BUCKET_MS, OTHER, UNKNOWN
from shared.schemas.received import IDLE_MS, RELEASES_MAX, SCHEMA_VERSION, Received, ReceivedCount

#: (customer id, release) → received, rejected. An empty release is not known.
Tally = dict[tuple[str, str], list[int]]

#: Of one body so many rejected beacons are looked at for their release; the others have the body's.
LOOKED_AT_MAX: Final = 32
#: Customers that one collector counts at a time: where any key is a customer, clients invent them.
CUSTOMERS_MAX: Final = 10_000
#: Releases of one customer that are counted in one bucket.
COUNTED_MAX: Final = 100
#: Who sent these named no customer of the installation.
_OF_NOBODY: Final = frozenset({"unknown_customer", "revoked_key"})


class Tallies:
    """Counts one request at a time, and remembers the releases of views. Use it on one thread."""

    def __init__(self) -> None:
        self._releases = Releases()

    def tally(self, parsed: ParsedBody, post: Post, rules: Rules) -> Tally:
        """The beacons of one request by customer and release; nothing of spans and calls."""
        found: Tally = {}
        if parsed.accepted and not isinstance(parsed.accepted[0], Beacon):
            return found
        beacons = cast("list[Beacon]", parsed.accepted)
        customer_id = view_id = release = ""
        begun = 0
        for place, one in enumerate(beacons):
            if one.view_id != view_id or one.customer_id != customer_id:
                _count(found, (customer_id, release), place - begun)
                customer_id, view_id, begun = one.customer_id, one.view_id, place
                release = self._releases.of((customer_id, view_id))
            # A view does not change its release.
            if not release and (named := release_of(one.attrs)):
                _count(found, (customer_id, ""), place - begun)
                release, begun = named, place
                self._releases.remember((customer_id, view_id), named)
        _count(found, (customer_id, release), len(beacons) - begun)
        if parsed.rejected:
            self._add_rejected(found, parsed.rejected, post, rules, release)
        return found

    def _add_rejected(self, found: Tally, rejected: list[Rejected], post: Post, rules: Rules, release: str) -> None:
        """`release` is that of the last accepted beacon: one body is nearly always of one player."""
        head: bytes | None = None
        for place, one in enumerate(rejected):
            if one.reason in _OF_NOBODY:
                continue
            view: View = (one.customer_id, one.view_id)
            looks = place < LOOKED_AT_MAX
            text = one.value
            if looks and one.encoded:
                head = beginning(post, rules, LOOKED_AT_BYTES) if head is None else head
                text = head
            customer_id = one.customer_id
            if customer_id is None and looks:
                customer_id = _customer_in(text, rules)
            if customer_id is None or not (rules.customers.takes_any or rules.customers.lists(customer_id)):
                continue
            named = release_in(text) if looks else ""
            if not named and looks:
                named = self._releases.of((customer_id, view[1] or view_in(text)))
            _count(found, (customer_id, named or release), 1, rejected=1)


def _customer_in(head: bytes, rules: Rules) -> str | None:
    """The customer whose key a body names that could not be read."""
    customer = rules.customers.find(key) if (key := key_in(head)) else None
    return customer.id if isinstance(customer, Found) else None


def _count(found: Tally, key: tuple[str, str], received: int, *, rejected: int = 0) -> None:
    if received:
        counts = found.setdefault(key, [0, 0])
        counts[0] += received
        counts[1] += rejected


class Counts:
    """What has come together since the last report. Use it on one thread."""

    def __init__(self, collector_id: str, process: int) -> None:
        self.collector_id = collector_id
        self._process = process
        #: By customer, then release.
        self._growing: dict[str, dict[str, list[int]]] = {}
        #: By customer the begin of the last bucket in which something came.
        self._seen_ms: dict[str, int] = {}
        #: Beacons of customers beyond the limit.
        self.uncounted = 0

    def add(self, tally: Tally) -> None:
        """Counts a request whose records are stored."""
        for (customer_id, release), (received, rejected) in tally.items():
            releases = self._growing.get(customer_id)
            if releases is None:
                if len(self._growing) >= CUSTOMERS_MAX:
                    self.uncounted += received
                    continue
                releases = self._growing[customer_id] = {}
            name = release if release in releases or len(releases) < COUNTED_MAX else OTHER
            counts = releases.setdefault(name, [0, 0])
            counts[0] += received
            counts[1] += rejected

    def report(self, bucket_ms: int) -> Iterator[Received]:
        """What came of each customer in a bucket, and zeros of those of which something came lately."""
        growing, self._growing = self._growing, {}
        self._seen_ms |= dict.fromkeys(growing, bucket_ms)
        known = [one for one, seen_ms in self._seen_ms.items() if seen_ms > bucket_ms - IDLE_MS]
        self._seen_ms = {
            one: self._seen_ms[one] for one in sorted(known, key=lambda one: -self._seen_ms[one])[:CUSTOMERS_MAX]
        }
        for customer_id in self._seen_ms:
            releases = growing.get(customer_id, {})
            received, rejected = (sum(counts[at] for counts in releases.values()) for at in (0, 1))
            yield Received(
                schema_version=SCHEMA_VERSION,
                customer_id=customer_id,
                collector=self.collector_id,
                process=self._process,
                bucket_ms=bucket_ms,
                received=received,
                rejected=rejected,
                releases=_named(releases),
            )


def _named(releases: dict[str, list[int]]) -> dict[str, ReceivedCount]:
    """Those of which the most was received; all others together."""
    ranked = sorted((name for name in releases if name not in ("", OTHER)), key=lambda one: (-releases[one][0], one))
    sums: dict[str, list[int]] = {}
    for name, (received, rejected) in releases.items():
        shown = UNKNOWN if not name else name if name in ranked[:RELEASES_MAX] else OTHER
        counts = sums.setdefault(shown, [0, 0])
        counts[0] += received
        counts[1] += rejected
    return {name: ReceivedCount(*counts) for name, counts in sums.items()}


def bucket_of(at_ms: int) -> int:
    """The begin of the bucket that holds a time."""
    return at_ms - at_ms % BUCKET_MS
