"""Questions to the processor's lookups: one view, and the partitions with their slots.

The processor knows every view that is open, or finished within its lateness window.
"""

from typing import Protocol

from services.rim.http.lookups import Lookups, LookupsRefused, view_path


class Views(Protocol):
    """Where one view comes from."""

    async def view(self, customer_id: str, view_id: str) -> bytes | None:
        """The processor's answer, JSON; None where it knows no such view. Raises `LookupsAway` or `LookupsRefused`."""
        ...

    async def partitions(self) -> bytes:
        """Every partition with its owner and state, as the queried slot reports it; JSON. Raises as `view` does."""
        ...


class ProcessorViews:
    """`Views` by these lookups."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    async def open(self) -> None:
        """Makes the client; opens no connection yet."""
        await self._lookups.open()

    async def close(self) -> None:
        """Closes its connections."""
        await self._lookups.close()

    async def view(self, customer_id: str, view_id: str) -> bytes | None:
        """See `Views`."""
        return await self._lookups.get(view_path(customer_id, view_id))

    async def partitions(self) -> bytes:
        """See `Views`."""
        found = await self._lookups.get("/partitions")
        if found is None:
            raise LookupsRefused("404", 404)
        return found
