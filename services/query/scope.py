"""The caller, and the customers whose views the caller may see: the one place that decides it."""

from collections.abc import Collection
from dataclasses import dataclass

from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.accounts.core.principal import Principal
from services.query.core.customers import Customers


@dataclass(frozen=True)
class Caller:
    """Somebody who may ask."""

    #: Of a person or a token; their questions are counted by it.
    name: str
    scope: CustomerScope = EVERYTHING
    organisation: str = ""

    @classmethod
    def of(cls, principal: Principal) -> "Caller":
        """The caller that a request's principal is."""
        return cls(principal.caller, principal.scope, principal.organisation_id)

    def admit(self, wanted: Collection[str]) -> Customers:
        """The customers of a question: those that are wanted, or, where none is named, all that the caller may see.

        Raises `UnknownCustomer`: what one may not see does not exist.
        """
        if wanted:
            if not all(map(self.scope.has, wanted)):
                raise UnknownCustomer
            return Customers(tuple(sorted(set(wanted))))
        if self.scope.all_but is None:
            return Customers(tuple(sorted(self.scope.own)))
        return Customers(but=tuple(sorted(self.scope.all_but)))


class UnknownCustomer(LookupError):
    """There is no such customer for this caller."""
