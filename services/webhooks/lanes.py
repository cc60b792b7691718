"""Lanes: one per partition. A lane delivers its messages in order, so that an anomaly opens before it closes.

A lane that waits for its receiver delays no other lane and no application: applications only write the topic.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import NamedTuple

Place = tuple[str, int]


class ReadRecord(NamedTuple):
    """One record, as it was read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Lanes:
    """The records in hand, on one event loop."""

    def __init__(
        self, work: Callable[[ReadRecord], Awaitable[None]], on_death: Callable[[BaseException], None]
    ) -> None:
        """`work` does all that is to be done of a record, its position included; what it raises ends the process by `on_death`."""
        self._work = work
        self._on_death = on_death
        self._queues: dict[Place, asyncio.Queue[ReadRecord]] = {}
        self._tasks: dict[Place, asyncio.Task[None]] = {}
        #: Records in hand.
        self.pending = 0

    def add(self, record: ReadRecord) -> None:
        """Takes a record in; its lane delivers it after those before it."""
        place = (record.topic, record.partition)
        if place not in self._tasks:
            self._queues[place] = asyncio.Queue()
            self._tasks[place] = asyncio.create_task(self._run(place))
            self._tasks[place].add_done_callback(self._ended)
        self.pending += 1
        self._queues[place].put_nowait(record)

    def drop(self, places: list[Place]) -> None:
        """Drops the lanes of partitions that other members have now: these deliver what was not delivered."""
        for place in places:
            if place in self._tasks:
                self._tasks.pop(place).cancel()
                self.pending -= self._queues.pop(place).qsize()

    async def end(self, seconds: float) -> None:
        """Waits this long for records in hand, then drops them."""
        done = asyncio.gather(*(queue.join() for queue in self._queues.values()))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done, seconds)
        tasks = list(self._tasks.values())
        self.drop(list(self._tasks))
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, place: Place) -> None:
        queue = self._queues[place]
        while True:
            record = await queue.get()
            try:
                await self._work(record)
            finally:
                self.pending -= 1
                queue.task_done()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_death(error)
