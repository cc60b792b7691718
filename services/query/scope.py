"""Who asks, and what they may see: the one place that decides it."""

import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Caller:
    """Somebody who may ask. `customers` None: all there are."""

    name: str
    customers: frozenset[str] | None = None

    def admit(self, wanted: Collection[str]) -> tuple[str, ...] | None:
        """The customers of a question: those that are wanted, or, where none is named, all that the caller may see.

        Raises `UnknownCustomer`: what one may not see does not exist.
        """
        if not wanted:
            return None if self.customers is None else tuple(sorted(self.customers))
        if self.customers is not None and not set(wanted) <= self.customers:
            raise UnknownCustomer
        return tuple(sorted(set(wanted)))


class UnknownCustomer(LookupError):
    """There is no such customer for this caller."""


class Scope(Protocol):
    """Knows callers."""

    def caller(self, headers: Mapping[str, str]) -> Caller | None:
        """Who sends a request with these headers; None: nobody who may ask."""
        ...


class OneToken:
    """One bearer token, as the lookups have it, for all customers or for some."""

    def __init__(self, token: str, customers: Collection[str] = ()) -> None:
        self._token = token.encode()
        self._caller = Caller("token", frozenset(customers) or None)

    def caller(self, headers: Mapping[str, str]) -> Caller | None:
        """See `Scope`."""
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        is_known = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), self._token)
        return self._caller if is_known else None
