"""The sink of clients whose retries amplify: spools requests that Kafka does not accept now, and sends them when it does."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from services.collector.sink.records import Record
from services.collector.sink.sink import Sink, Unstored
from services.collector.sink.spool_files import Oldest, Spool, size_of
from services.rim.admin.admin import Check
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_SPOOL_AGE_SECONDS, COLLECTOR_SPOOL_BYTES, COLLECTOR_SPOOLED

log = structlog.get_logger(__name__)

#: How much is sent at once while draining: many requests, so that it goes faster than new ones come.
DRAIN_BYTES: Final = 1024 * 1024
RETRY_SECONDS: Final = 0.5


class SpooledSink:
    """A `Sink` before another one. Make it on the event loop; `spool` is its own from then on.

    While anything is in the spool everything newer goes behind it, so order is kept. It refuses when it is full, or when
    the oldest request in it has waited `seconds_max`: what comes much later would come late. What it has taken it sends
    however long that has waited: it was answered with success.

    `on_death` is called when it can send no more of the spool; the process must then end.

    While the last of it is on its way to the sink, newer requests are held in memory instead of written to it. Otherwise it would
    never be empty under steady traffic.
    """

    def __init__(
        self,
        sink: Sink,
        spool: Spool,
        *,
        bytes_max: int,
        seconds_max: float,
        now_ms: Callable[[], int],
        on_death: Callable[[], None],
    ) -> None:
        self._sink = sink
        self._spool = spool
        self._bytes_max = bytes_max
        self._ms_max = seconds_max * 1_000
        self._now_ms = now_ms
        #: Every access to the spool's files goes through this one thread.
        self._thread = ThreadPoolExecutor(1, "spool")
        self._incoming: list[tuple[Sequence[Record], asyncio.Future[None]]] = []
        self._incoming_bytes = 0
        self._spooling = spool.bytes > 0
        #: Requests that wait for the last of the spool to be taken, in order; `None` while newer ones are written to it.
        self._held: list[asyncio.Future[None]] | None = None
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        if self._spooling:
            self._wake.set()
        else:
            self._empty.set()
        #: Requests that were sent later than `seconds_max` since the spool was last empty.
        self._overdue = 0
        #: Why the disk refused the last batch, and the sink the last of the spool: each is logged when it changes.
        self._disk_problem = ""
        self._sink_problem = ""
        self._closed = False
        self._on_death = on_death
        self._writer: asyncio.Task[None] | None = None
        self._drainer = asyncio.get_running_loop().create_task(self._watch())
        metrics.gauge(COLLECTOR_SPOOL_BYTES).set_function(lambda: spool.bytes)
        metrics.gauge(COLLECTOR_SPOOL_AGE_SECONDS).set_function(lambda: self._age_ms() / 1_000)

    async def store(self, records: Sequence[Record]) -> None:
        """See `Sink`; or returns once the records are on this machine's disk."""
        if not records:
            return
        if self._closed:
            raise Unstored("dead", "the sink is closed")
        if self._held is not None:
            turn = asyncio.get_running_loop().create_future()
            self._held.append(turn)
            await turn
        if not self._spooling:
            try:
                await self._sink.store(records)
                return
            except Unstored as unstored:
                log.warning("spooling", why=str(unstored), spool_bytes=self._spool.bytes)
        await self._append(records)

    def records_waiting(self) -> int:
        """Those of the sink behind; what is in the spool is stored."""
        return self._sink.records_waiting()

    def bytes_held(self) -> int:
        """Bytes in the spool that are not yet in Kafka."""
        return self._spool.bytes

    def health(self) -> Check:
        """That of the sink behind, unless the spool's drainer has ended."""
        if self._drainer.done():
            return Check(False, "the spool's drainer ended")
        return self._sink.health()

    async def close(self, seconds_max: float) -> int:
        """See `Sink`. Waits that long for the spool to drain; `bytes_held` is then what it still holds."""
        try:
            async with asyncio.timeout(seconds_max):
                await self._empty.wait()
        except TimeoutError:
            log.warning("spool_not_drained", spool_bytes=self._spool.bytes)
        if self._closed:
            return 0
        self._closed = True
        self._drainer.cancel()
        await asyncio.gather(self._drainer, return_exceptions=True)
        self._release()
        if self._writer is not None:
            await self._writer
        await asyncio.get_running_loop().run_in_executor(self._thread, self._spool.close)
        self._thread.shutdown()
        return await self._sink.close(seconds_max)

    def _age_ms(self) -> float:
        oldest_ms = self._spool.oldest_ms
        return 0 if oldest_ms is None else max(0, self._now_ms() - oldest_ms)

    async def _append(self, records: Sequence[Record]) -> None:
        if self._closed:
            raise Unstored("dead", "the sink is closed")
        size = size_of(records)
        if self._spool.bytes + self._incoming_bytes + size > self._bytes_max:
            raise self._refusal(f"{self._spool.bytes} bytes are in the spool")
        if self._age_ms() > self._ms_max:
            raise self._refusal("the oldest request in the spool has waited too long")
        self._spooling = True
        self._empty.clear()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._incoming.append((records, future))
        self._incoming_bytes += size
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write())
        await future

    def _refusal(self, detail: str) -> Unstored:
        metrics.counter(COLLECTOR_SPOOLED).labels("refused").inc()
        return Unstored("spool_full", detail)

    async def _write(self) -> None:
        """Writes the waiting requests, all of them with one fsync, until none is left."""
        loop = asyncio.get_running_loop()
        try:
            while self._incoming:
                batch, self._incoming = self._incoming, []
                self._incoming_bytes = 0
                requests = [records for records, _ in batch]
                try:
                    await loop.run_in_executor(self._thread, self._spool.append, requests, self._now_ms())
                except OSError as error:
                    if self._disk_problem != (problem := str(error)):
                        self._disk_problem = problem
                        log.error("spool_failed", problem=problem)
                    for _, future in batch:
                        if not future.done():
                            future.set_exception(Unstored("spool_failed", str(error)))
                    continue
                self._disk_problem = ""
                metrics.counter(COLLECTOR_SPOOLED).labels("written").inc(len(batch))
                for _, future in batch:
                    if not future.done():
                        future.set_result(None)
        finally:
            self._writer = None
            self._wake.set()

    async def _watch(self) -> None:
        """Drains. Without it the collector would answer success until the spool is full, and send nothing."""
        try:
            await self._drain()
        except Exception:  # a task's top loop: it logs the cause, and the process ends
            log.exception("spool_drainer_ended")
            self._on_death()
            raise

    async def _drain(self) -> None:
        """Sends what is in the spool, oldest first, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            # A request that is written from here on wakes it again.
            self._wake.clear()
            oldest = await loop.run_in_executor(self._thread, self._spool.oldest, DRAIN_BYTES)
            if not oldest.size_bytes:
                # Everything in it was refused by the disk.
                if self._is_settled():
                    self._turn_direct()
                continue
            self._wake.set()
            if oldest.size_bytes == self._spool.bytes and self._is_settled():
                self._held = []
            await self._send(oldest.records)
            await loop.run_in_executor(self._thread, self._spool.take_out, oldest.size_bytes)
            self._count_drained(oldest)
            if self._held is None:
                continue
            if self._spool.bytes == 0 and self._is_settled():
                self._turn_direct()
            else:
                # A request that was on its way to the sink all the while has failed there and come behind.
                self._release()

    async def _send(self, records: Sequence[Record]) -> None:
        """Returns once the sink has all of them. Each partition waits for itself: what another has taken is not sent again."""
        waiting: dict[tuple[str, int], list[Record]] = {}
        for record in records:
            waiting.setdefault((record.topic, record.partition), []).append(record)
        while True:
            outcomes = await asyncio.gather(*map(self._sink.store, waiting.values()), return_exceptions=True)
            left, problem = {}, ""
            for (where, group), outcome in zip(waiting.items(), outcomes, strict=True):
                if isinstance(outcome, Unstored):
                    left[where] = group
                    problem = outcome.reason
                elif outcome is not None:
                    raise outcome
            if not left:
                self._sink_problem = ""
                return
            if problem != self._sink_problem:
                self._sink_problem = problem
                log.warning("spool_waits", why=problem, partitions=len(left), spool_bytes=self._spool.bytes)
            # Nothing is lost by waiting; everything newer waits behind.
            waiting = left
            self._release()
            await asyncio.sleep(RETRY_SECONDS)

    def _count_drained(self, oldest: Oldest) -> None:
        metrics.counter(COLLECTOR_SPOOLED).labels("drained").inc(len(oldest.times_ms))
        taken_in_min = self._now_ms() - self._ms_max
        overdue = sum(time_ms < taken_in_min for time_ms in oldest.times_ms)
        if not overdue:
            return
        if not self._overdue:
            log.warning("spool_overdue", seconds_max=self._ms_max / 1_000, spool_bytes=self._spool.bytes)
        self._overdue += overdue
        metrics.counter(COLLECTOR_SPOOLED).labels("drained_overdue").inc(overdue)

    def _is_settled(self) -> bool:
        """Whether nothing is on its way into the spool."""
        return self._writer is None and not self._incoming

    def _turn_direct(self) -> None:
        """The spool is empty: what is held goes to the sink, and what comes after it."""
        self._spooling = False
        self._wake.clear()
        self._empty.set()
        self._release()
        log.info("spool_drained", requests_overdue=self._overdue)
        self._overdue = 0

    def _release(self) -> None:
        """Lets the held go on, in their order; those that come before the last of them has gone wait behind them."""
        if not self._held:
            self._held = None
            return
        turns, self._held = self._held, []
        for turn in turns:
            if not turn.done():
                turn.set_result(None)
        asyncio.get_running_loop().call_soon(self._release)
