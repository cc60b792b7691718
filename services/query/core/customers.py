"""The customers whose views a question is about. Pure."""

from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Customers:
    """Those of `only`; or, where that is None, every customer there is but those of `but`."""

    only: tuple[str, ...] | None = None
    but: tuple[str, ...] = ()

    def has(self, customer_id: str) -> bool:
        """Whether a customer's views belong to it."""
        return customer_id not in self.but if self.only is None else customer_id in self.only

    @property
    def listed(self) -> list[str] | None:
        """Those of `only`, for a statement's placeholder."""
        return None if self.only is None else list(self.only)


#: The customers of a parameter (none: all) that the caller may see; raises what the caller is answered by.
Admit = Callable[[Collection[str]], Customers]
EVERY_CUSTOMER = Customers()
