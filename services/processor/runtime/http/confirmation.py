"""OwnershipConfirmation: an answer is sent only if the group, queried after the rows were read, names this member as the owner.

No clock is used: a slot that was paused, evicted or replaced gives no stale answer (see `ownership`). Runs on the lookup thread's
loop.
"""

import asyncio

from services.processor.runtime.kafka.ownership import Ownership, boot_seconds
from services.processor.runtime.questions import Unanswered


class OwnershipConfirmation:
    """Waits for the group's word."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._news = asyncio.Event()

    def spread_news(self) -> None:
        """The group has been asked again."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def confirm(self, partition: int, member_id: str, read_at: float, deadline: float) -> None:
        """Waits for the group to say that the member which read the rows was the partition's owner after it had.

        Times are `boot_seconds`. Raises `Unanswered`.
        """
        while True:
            told = self._ownership.newest
            if told.asked_at >= read_at and told.confirms(partition, member_id):
                return
            if told.asked_at >= read_at and told.is_settled:
                raise Unanswered("the group does not confirm that this slot has the partition")
            await self.newer(max(read_at, told.asked_at), deadline)

    async def newer(self, than: float, deadline: float) -> None:
        """Waits for an answer of the group to a question asked after `than`. Raises `Unanswered`."""
        while self._ownership.newest.asked_at <= than:
            news = self._news
            self._ownership.want()
            try:
                await asyncio.wait_for(news.wait(), deadline - boot_seconds())
            except TimeoutError:
                raise Unanswered("the group does not say who has the partition") from None
