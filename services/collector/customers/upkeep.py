"""Tasks that run beside requests until the collector ends: reloads of customers, reports of their usage, and other checks."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence

import structlog

from services.collector.customers.file import CustomersSource
from services.collector.customers.usage_reports import UsageReports

log = structlog.get_logger(__name__)


class Upkeep:
    """The tasks of `source` and `reports`; either may be absent."""

    def __init__(self, source: CustomersSource | None, reports: UsageReports | None, stop: threading.Event) -> None:
        self._source = source
        self._reports = reports
        self._stop = stop
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Before the first request: what each customer may still store of its day is known then."""
        if self._reports is not None:
            await self._reports.send()

    def start(
        self, *, customers_seconds: float, usage_seconds: float, more: Sequence[Coroutine[None, None, None]] = ()
    ) -> None:
        """Starts the tasks, at these intervals, and what else is to run."""
        self._tasks.extend(asyncio.create_task(self._watch(one)) for one in more)
        if self._source is not None:
            self._tasks.append(asyncio.create_task(self._watch(self._source.watch(customers_seconds))))
        if self._reports is not None:
            self._tasks.append(asyncio.create_task(self._watch(self._reports.watch(usage_seconds))))

    async def end(self) -> bool:
        """Ends the tasks, and reports what is left. False if one of them had ended by an error."""
        for task in self._tasks:
            task.cancel()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._reports is not None:
            await self._reports.finish()
        return not any(isinstance(end, Exception) for end in ends)

    async def _watch(self, watched: Coroutine[None, None, None]) -> None:
        """Stops the process when the watch ends. Without it a collector would accept revoked keys for ever."""
        try:
            await watched
        except Exception:  # a task's top loop: it logs the cause, and the process ends
            log.exception("watch_ended")
            self._stop.set()
            raise
