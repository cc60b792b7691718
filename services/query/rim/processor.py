"""The processor's lookup of one view: it knows those that are open or finished within the lateness window."""

from typing import Any, Literal

import msgspec
import structlog

from services.rim.http.lookups import Lookups, LookupsAway, LookupsRefused, view_path

log = structlog.get_logger(__name__)


class ProcessorAway(RuntimeError):
    """No slot answered, or the view's partition has no owner at the moment."""


class FoundView(msgspec.Struct, frozen=True):
    """What the processor knows of a view. `row` is None once the view is closed."""

    state: Literal["open", "finished", "closed"]
    revision: int
    row: dict[str, Any] | None


class _Answer(msgspec.Struct, frozen=True):
    found: FoundView | None
    stale: bool = False


class Processor:
    """The lookup of views by these lookups."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    async def open(self) -> None:
        """Makes the client; opens no connection yet."""
        await self._lookups.open()

    async def close(self) -> None:
        """Closes its connections."""
        await self._lookups.close()

    async def view(self, customer_id: str, view_id: str) -> FoundView | None:
        """The view as it is now; None where the processor knows none. Raises `ProcessorAway`."""
        try:
            body = await self._lookups.get(view_path(customer_id, view_id))
            return None if body is None else msgspec.json.decode(body, type=_Answer).found
        except LookupsRefused as error:
            if error.status == 400:
                return None
            raise ProcessorAway(str(error)) from error
        except LookupsAway as error:
            raise ProcessorAway(str(error)) from error
        except msgspec.DecodeError as error:
            log.warning("lookups_away", kind=type(error).__name__)
            raise ProcessorAway(type(error).__name__) from error
