"""The operator's view: every partition of an application, collected from the owners, as JSON."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from services.processor.engine.routing import Owner
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.telemetry.status import PartitionStatus, SlotStatus

OWNERS_ASKED_MAX: Final = 256


class Overview(msgspec.Struct, frozen=True):
    """The answer of `GET /partitions`."""

    application: str
    #: The slot that was asked.
    asked: str
    slots: list[SlotStatus]
    partitions: list[PartitionStatus]


def overview(
    application: str,
    asked: str,
    partitions: int,
    owners: Mapping[int, Owner],
    slots: list[SlotStatus],
    *,
    standby_lag: Callable[[int], int | None],
) -> Overview:
    """Every partition once: as its owner describes it, else as the group does; with the lag of its freshest copy."""
    told = {status.partition: status for slot in slots for status in slot.partitions}
    rows = []
    for partition in range(partitions):
        owner = owners.get(partition)
        if partition in told and (owner is None or owner.slot == told[partition].owner):
            rows.append(told[partition])
        elif owner is not None:
            rows.append(PartitionStatus(partition=partition, owner=owner.slot, state="unanswered"))
        else:
            rows.append(PartitionStatus(partition=partition))
        rows[-1] = msgspec.structs.replace(rows[-1], standby_lag_records=standby_lag(partition))
    bare = [SlotStatus(slot.slot, [], slot.rss_bytes, slot.cpu_us_per_record, slot.problem) for slot in slots]
    return Overview(application, asked, sorted(bare, key=lambda slot: slot.slot), rows)


class Operators:
    """Asks every owner once, all at the same time, and joins their answers."""

    def __init__(
        self,
        application: str,
        slot: str,
        ownership: Ownership,
        session: aiohttp.ClientSession,
        standby_lag: Callable[[int], int | None],
    ) -> None:
        self._application = application
        self._slot = slot
        self._ownership = ownership
        self._session = session
        self._standby_lag = standby_lag

    async def answer(self, here: SlotStatus | None) -> web.Response:
        """The view, with what this slot says of itself."""
        owners = self._ownership.owners
        urls = {
            owner.url: owner.slot
            for owner in owners.by_partition.values()
            if owner.url is not None and owner.url != owners.url
        }
        asked = list(urls.items())[:OWNERS_ASKED_MAX]
        slots = list(await asyncio.gather(*(self._ask(url, slot) for url, slot in asked)))
        if here is not None:
            slots.append(here)
        seen = overview(
            self._application, self._slot, owners.partitions, owners.by_partition, slots, standby_lag=self._standby_lag
        )
        return web.Response(body=msgspec.json.encode(seen), content_type="application/json")

    async def _ask(self, url: str, slot: str) -> SlotStatus:
        try:
            async with self._session.get(f"{url}/partitions", allow_redirects=False) as answer:
                if answer.status != 200:
                    return SlotStatus(slot, problem=f"answered {answer.status}")
                return msgspec.json.decode(await answer.read(), type=SlotStatus)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            return SlotStatus(slot, problem=type(error).__name__)
