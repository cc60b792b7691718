"""Customers: whose beacons are accepted, and under which rules. The customers file as typed values, found by write key. Pure.

Without a file every well-formed id is a customer and its own key.
"""

import tomllib
from collections.abc import Mapping, Sequence, Set
from typing import Annotated, Final, Literal

import msgspec

from shared.http.patterns import whole
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.rejected import Reason

IPV4_BITS_KEPT: Final = 24
IPV6_BITS_KEPT: Final = 48

_Name = Annotated[str, msgspec.Meta(pattern=whole(CUSTOMER_ID.pattern))]
#: As browsers write it: lower case, no path, the port only where it is not the scheme's own (RFC 6454, 6.2); pages without
#: one send `null`.
_Origin = Annotated[str, msgspec.Meta(pattern=whole(r"null|[a-z][a-z0-9+.-]*://[^/?#@\sA-Z]+"))]
SIGNING_KEYS_MAX: Final = 4
_SigningKey = Annotated[str, msgspec.Meta(min_length=32, max_length=256)]
_Rate = Annotated[float, msgspec.Meta(gt=0, le=1e12)]


class CustomersWrong(ValueError):
    """The text is no customers file; the message says where and why."""


class Customer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The terms of one customer, as the file has them. Rates are of one collector process; None is no limit."""

    #: What players of this customer send as their key; none given: the customer's id.
    keys: tuple[_Name, ...] = ()
    #: Keys that were given out once and must no longer be used.
    revoked_keys: tuple[_Name, ...] = ()
    beacons_per_second: _Rate | None = None
    #: Bytes of bodies as they came.
    bytes_per_second: _Rate | None = None
    #: The same over a day: what it may store.
    bytes_per_day: _Rate | None = None
    #: CPU time that reading its requests takes, ms a second; 1,000 is one core.
    cpu_ms_per_second: _Rate | None = None
    spans_per_second: _Rate | None = None
    calls_per_second: _Rate | None = None
    recordings_per_minute: _Rate | None = None
    #: Views of which a process has seen no beacon lately.
    new_views_per_second: _Rate | None = None
    #: What the customer's server signs views with (docs/clients.md): several while one replaces another. Never logged.
    signing_keys: Annotated[tuple[_SigningKey, ...], msgspec.Meta(max_length=SIGNING_KEYS_MAX)] = ()
    #: With signing keys: `mark` writes in each row whether its view was signed, `require` rejects beacons that are not.
    signed_views: Literal["mark", "require"] = "mark"
    #: Pages that may send (`https://www.acme.example`); none given: all. What is no page sends no origin and always may.
    origins: frozenset[_Origin] = frozenset()
    #: How much of a client's address is kept; 0: nothing.
    ipv4_bits_kept: Annotated[int, msgspec.Meta(ge=0, le=IPV4_BITS_KEPT)] = IPV4_BITS_KEPT
    ipv6_bits_kept: Annotated[int, msgspec.Meta(ge=0, le=IPV6_BITS_KEPT)] = IPV6_BITS_KEPT
    #: What a viewer's `DNT: 1` or `Sec-GPC: 1` does: `honour` removes the attributes that identify viewers, `ignore` removes
    #: nothing.
    privacy_signals: Literal["honour", "ignore"] = "honour"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    customers: dict[_Name, Customer]


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one write key may send, of what its customer may. Rates are of one collector process; None is no limit."""

    beacons_per_second: _Rate | None = None
    bytes_per_second: _Rate | None = None


class WriteKey(msgspec.Struct, frozen=True, kw_only=True):
    """A write key beside those of its customer's terms."""

    key: _Name
    customer_id: _Name
    #: Pages that may send with it; none given: those of the customer.
    origins: frozenset[_Origin] = frozenset()
    beacons_per_second: _Rate | None = None
    bytes_per_second: _Rate | None = None
    #: False: it was revoked, or has expired.
    is_valid: bool = True


class Found(msgspec.Struct, frozen=True):
    """A customer by one of its keys."""

    id: str
    terms: Customer


_NO_TERMS: Final = Customer()


class Customers:
    """Customers by key. `None` instead of a mapping: every well-formed key is a customer."""

    def __init__(
        self,
        customers: Mapping[str, Customer] | None = None,
        keys: Sequence[WriteKey] = (),
        have_keys: Set[str] = frozenset(),
    ) -> None:
        """`have_keys`: customers that have keys also where none of `keys` is theirs. The id of such a customer is no key."""
        self._by_key: dict[str, Found] | None = None
        self._revoked: frozenset[str] = frozenset()
        self._terms = dict(customers or {})
        #: Of keys that have limits of their own.
        self._limits = {
            one.key: KeyLimits(beacons_per_second=one.beacons_per_second, bytes_per_second=one.bytes_per_second)
            for one in keys
            if one.is_valid and (one.beacons_per_second or one.bytes_per_second)
        }
        #: Whether any customer signs its views.
        self.has_signing_keys = any(customer.signing_keys for customer in self._terms.values())
        for customer_id, customer in self._terms.items():
            if customer.signed_views == "require" and not customer.signing_keys:
                raise CustomersWrong(f"customer {customer_id} requires signed views and has no signing keys")
        if customers is not None:
            self._by_key = _by_key(customers, keys, have_keys)
            revoked = frozenset(key for customer in customers.values() for key in customer.revoked_keys)
            revoked |= {one.key for one in keys if not one.is_valid}
            if valid := revoked & self._by_key.keys():
                raise CustomersWrong(f"keys both valid and revoked: {', '.join(sorted(valid))}")
            self._revoked = revoked

    def find(self, key: str) -> Found | Reason:
        """The customer of a well-formed key, or why there is none: `unknown_customer` or `revoked_key`."""
        if self._by_key is None:
            return Found(key, _NO_TERMS)
        return self._by_key.get(key) or ("revoked_key" if key in self._revoked else "unknown_customer")

    def limits(self, key: str) -> KeyLimits | None:
        """What a key may send, where it has limits of its own."""
        return self._limits.get(key)

    @property
    def has_limited_keys(self) -> bool:
        """Whether any key has."""
        return bool(self._limits)

    def terms(self, customer_id: str) -> Customer:
        """The terms of a customer that `find` gave."""
        return self._terms.get(customer_id, _NO_TERMS)

    def lists(self, customer_id: str | None) -> bool:
        """Whether there are terms for this very customer."""
        return customer_id in self._terms

    @property
    def takes_any(self) -> bool:
        """Whether every well-formed key is a customer."""
        return self._by_key is None

    def __len__(self) -> int:
        """How many keys are listed."""
        return len(self._by_key or ())


#: Every well-formed key is a customer.
ANYBODY: Final = Customers()


def parsed_customers(data: bytes, *, toml: bool) -> Customers:
    """The customers in the bytes of a file, TOML or JSON; raises `CustomersWrong`."""
    try:
        document = tomllib.loads(data.decode("utf-8")) if toml else msgspec.json.decode(data)
        file = msgspec.convert(document, _File)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CustomersWrong(str(error)) from error
    return listed(file.customers)


def listed(
    customers: Mapping[str, Customer], keys: Sequence[WriteKey] = (), have_keys: Set[str] = frozenset()
) -> Customers:
    """These customers and no others; raises `CustomersWrong` without a customer, or when keys collide."""
    if not customers:
        # An empty file or table is probably a mistake: the collector would reject everything.
        raise CustomersWrong("there are no customers in it")
    return Customers(customers, keys, have_keys)


def _by_key(customers: Mapping[str, Customer], keys: Sequence[WriteKey], have_keys: Set[str]) -> dict[str, Found]:
    found: dict[str, Found] = {}

    def add(key: str, customer_id: str, terms: Customer) -> None:
        other = found.setdefault(key, Found(customer_id, terms))
        if other.id != customer_id:
            raise CustomersWrong(f"key {key} is of {other.id} and of {customer_id}")

    have_keys = have_keys | {one.customer_id for one in keys}
    for one in keys:
        # A customer that is not listed any more has no keys.
        terms = customers.get(one.customer_id) if one.is_valid else None
        if terms is not None:
            own = msgspec.structs.replace(terms, origins=one.origins) if one.origins else terms
            add(one.key, one.customer_id, own)
    for customer_id, terms in customers.items():
        for key in terms.keys or (() if customer_id in have_keys else (customer_id,)):
            add(key, customer_id, terms)
    return found
