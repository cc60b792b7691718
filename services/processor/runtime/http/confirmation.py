"""OwnershipConfirmation: an answer is sent only if the group, queried after the rows were read, names this member as the owner.

No clock is used: a slot that was paused, evicted or replaced gives no stale answer (see `ownership`). Runs on the lookup thread's
loop.
"""

import asyncio
from concurrent.futures import Future
from typing import TypeVar

from services.processor.runtime.kafka.ownership import Ownership, boot_seconds
from services.processor.runtime.questions import Unanswered

T = TypeVar("T")


class OwnershipConfirmation:
    """Waits for the group's replies. Times are `boot_seconds`."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._replied = asyncio.Event()

    def note_reply(self) -> None:
        """The group has been asked again."""
        replied, self._replied = self._replied, asyncio.Event()
        replied.set()

    async def confirmed(self, answer: Future[tuple[T, str]], partition: int, deadline: float) -> T:
        """An answer of the slot's loop, confirmed for the member id that comes with it. Raises `Unanswered`, or what it raises."""
        try:
            found, member_id = await asyncio.wait_for(asyncio.wrap_future(answer), deadline - boot_seconds())
        except TimeoutError:
            raise Unanswered("the slot has no answer yet") from None
        await self.confirm(partition, member_id, boot_seconds(), deadline)
        return found

    async def confirm(self, partition: int, member_id: str, read_at: float, deadline: float) -> None:
        """Waits until the group confirms that the member which read the rows owned the partition afterwards.

        Raises `Unanswered`.
        """
        while True:
            reply = self._ownership.newest
            if reply.asked_at >= read_at and reply.confirms(partition, member_id):
                return
            if reply.asked_at >= read_at and reply.is_settled:
                raise Unanswered("the group does not confirm that this slot has the partition")
            await self.newer(max(read_at, reply.asked_at), deadline)

    async def newer(self, than: float, deadline: float) -> None:
        """Waits for a reply of the group to a query sent after `than`. Raises `Unanswered`."""
        while self._ownership.newest.asked_at <= than:
            replied = self._replied
            self._ownership.want()
            try:
                await asyncio.wait_for(replied.wait(), deadline - boot_seconds())
            except TimeoutError:
                raise Unanswered("the group does not say who has the partition") from None
