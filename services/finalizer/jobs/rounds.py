"""Which tables are due for maintenance. The times are in Postgres: a process that lives for less than an interval counts on."""

from collections.abc import Callable, Sequence

from services.finalizer.serving.database import Serving


class Rounds:
    """Belongs to one `Maintenance`. What it calls raises `Fenced` and `ServingAway`."""

    def __init__(self, serving: Serving, every_seconds: float, clock_ms: Callable[[], int]) -> None:
        self._serving = serving
        self._every_ms = 1_000 * every_seconds
        self._clock_ms = clock_ms
        #: By table, ms since 1970; read once.
        self._last: dict[str, int] = {}

    def due(self, names: Sequence[str]) -> list[str]:
        """Those that were maintained an interval ago. One that never was begins its interval now."""
        now_ms = self._clock_ms()
        if unknown := [name for name in names if name not in self._last]:
            self._last |= self._serving.maintained(unknown, now_ms=now_ms)
        # A time that lies ahead is that of a clock which was wrong.
        return [name for name in names if not 0 <= now_ms - self._last[name] < self._every_ms]

    def done(self, name: str) -> None:
        """It was maintained now; durable on return."""
        self._last[name] = self._clock_ms()
        self._serving.note_maintained(name, self._last[name])
