"""TimersSpec and NamedTimers: several timers of one row, by name. Each is a row of its own, whose deadline is its time.

So timers are committed, replayed, copied by standbys and quarantined as all rows are. A timer's key is that of a map's entry.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from services.processor.engine.state.map_spec import MapSpec, owner_and_entry
from services.processor.engine.state.store_spec import StoreSpec


@dataclass(frozen=True)
class TimersSpec(MapSpec[bytes]):
    """The declaration of the named timers of a store's rows; `timers_of` makes it."""

    def key_and_name(self, key: bytes) -> tuple[bytes, bytes]:
        """The row that a timer is of, and the timer's name, by the timer's own key."""
        return owner_and_entry(key)


def timers_of(spec: StoreSpec[Any], *, name: str, store_id: int) -> TimersSpec:
    """Timers of the rows of `spec`: a store of its own, with this name and id. A rejected row takes its timers with it."""
    if isinstance(spec, MapSpec):
        raise ValueError(f"timers {name}: entries of a map have none; those of its owners' rows may")
    return TimersSpec(
        name=name, id=store_id, encode=bytes, decode=bytes, goes_with=spec.name, record_key=spec.record_key
    )


class NamedTimers(Protocol):
    """A core's timers of one `TimersSpec`, by the key of a row and a name."""

    def set(self, key: bytes, name: bytes, at_ms: int) -> None:
        """The processor's `fire_timer` is called at this clock time, ms since 1970, once; a former time of the name is replaced.

        A time that has passed is the next millisecond.
        """
        ...

    def at_ms(self, key: bytes, name: bytes) -> int:
        """When the timer fires; 0: it is not set."""
        ...

    def cancel(self, key: bytes, name: bytes) -> None:
        """The timer does not fire."""
        ...

    def clear(self, key: bytes, limit: int) -> int:
        """Cancels the first `limit` timers of the row; returns how many these were. Who deletes a row clears its timers."""
        ...
