"""CustomerScope: the customers whose data a principal may see. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class CustomerScope:
    """Some customers; or all customers but those that other organisations own."""

    own: frozenset[str] = frozenset()
    #: None: `own` alone. Else all customers but these; `own` is not read.
    all_but: frozenset[str] | None = None
    #: Whether these are all customers of the organisation.
    is_whole: bool = True

    def has(self, customer_id: str) -> bool:
        """Whether the customer's data may be seen."""
        return customer_id in self.own if self.all_but is None else customer_id not in self.all_but

    @property
    def is_everything(self) -> bool:
        """Whether it includes all customers, also ones that are not known yet."""
        return self.all_but is not None and not self.all_but

    def restricted_to(self, customers: Iterable[str]) -> "CustomerScope":
        """Those of `customers` that are in this scope."""
        return CustomerScope(own=frozenset(one for one in customers if self.has(one)), is_whole=False)


EVERYTHING: Final = CustomerScope(all_but=frozenset())
