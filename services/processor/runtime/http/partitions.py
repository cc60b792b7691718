"""The operator's view: every partition of an application, collected from the owners, as JSON."""

import contextlib
from collections.abc import Callable, Mapping

import aiohttp
import msgspec
from aiohttp import web

from services.processor.engine.routing import Owner
from services.processor.runtime.http.hops import PROXIED, ask_here, ask_other_owners
from services.processor.runtime.http.lookups import json_response, later
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.questions import Unanswered
from services.processor.runtime.slot.replica import Replica
from shared.schemas.slots import PartitionStatus, SlotsOverview, SlotStatus


def overview(
    application: str,
    answered_by: str,
    partitions: int,
    owners: Mapping[int, Owner],
    slots: list[SlotStatus],
    *,
    standby_lag: Callable[[int], int | None],
) -> SlotsOverview:
    """Every partition once: as its owner describes it, else as the group does; with the lag of its freshest copy."""
    by_partition = {status.partition: status for slot in slots for status in slot.partitions}
    rows = []
    for partition in range(partitions):
        owner = owners.get(partition)
        if partition in by_partition and (owner is None or owner.slot == by_partition[partition].owner):
            rows.append(by_partition[partition])
        elif owner is not None:
            rows.append(PartitionStatus(partition=partition, owner=owner.slot, state="unanswered"))
        else:
            rows.append(PartitionStatus(partition=partition))
        rows[-1] = msgspec.structs.replace(rows[-1], standby_lag_records=standby_lag(partition))
    bare = [SlotStatus(slot.slot, [], slot.rss_bytes, slot.cpu_us_per_record, slot.problem) for slot in slots]
    return SlotsOverview(application, answered_by, sorted(bare, key=lambda slot: slot.slot), rows)


class PartitionsRoute:
    """Asks this slot, and every other owner once, and joins their answers."""

    def __init__(
        self, application: str, slot: str, replica: Replica, ownership: Ownership, session: aiohttp.ClientSession
    ) -> None:
        self._application = application
        self._slot = slot
        self._replica = replica
        self._ownership = ownership
        self._session = session

    async def show(self, request: web.Request) -> web.Response:
        """Every partition; to another slot only those of this one."""
        here = None
        with contextlib.suppress(Unanswered):
            here = await ask_here(self._replica, lambda queries: queries.status())
        if PROXIED in request.headers:
            if here is None:
                return later("no slot works here, or it is busy")
            return json_response(200, msgspec.json.encode(here))
        slots = []
        for owner, status in await ask_other_owners(self._session, self._ownership, "GET", request.path, SlotStatus):
            slots.append(SlotStatus(owner.slot, problem=status) if isinstance(status, str) else status)
        if here is not None:
            slots.append(here)
        owners = self._ownership.owners
        seen = overview(
            self._application,
            self._slot,
            owners.partitions,
            owners.by_partition,
            slots,
            standby_lag=self._replica.standby_lag,
        )
        return json_response(200, msgspec.json.encode(seen))
