"""The operator's view: every partition of an application, gathered from its owners; as JSON and as a page."""

import asyncio
import html
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from services.processor.engine.routing import Owner
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.telemetry.status import PartitionStatus, SlotStatus

TAKES_HTML: Final = "text/html"
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
    """Asks every owner once, all at the same time, and puts together what they say."""

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

    async def answer(self, here: SlotStatus | None, accept: str) -> web.Response:
        """The view, with what this slot says of itself; a page where `accept` wants one."""
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
        if TAKES_HTML in accept:
            return web.Response(text=page(seen), content_type=TAKES_HTML)
        return web.Response(body=msgspec.json.encode(seen), content_type="application/json")

    async def _ask(self, url: str, slot: str) -> SlotStatus:
        try:
            async with self._session.get(f"{url}/partitions", allow_redirects=False) as answer:
                if answer.status != 200:
                    return SlotStatus(slot, problem=f"answered {answer.status}")
                return msgspec.json.decode(await answer.read(), type=SlotStatus)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            return SlotStatus(slot, problem=type(error).__name__)


_STYLE: Final = """
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif }
body { margin: 2rem }
h1 { font-size: 1.2rem }
table { border-collapse: collapse; margin: 1rem 0 2rem; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .8rem; white-space: nowrap; text-align: right; border-bottom: 1px solid #8884 }
th { font-weight: 600 }
.t { text-align: left }
.taking, .unanswered { color: #b36b00 }
.unowned { color: #c0262d; font-weight: 600 }
"""


def page(seen: Overview) -> str:
    """The view as a page of its own that asks nobody for anything, and renews itself."""
    heads = (
        "partition", "owner", "state", "lag, records", "clock, ms", "last commit, ms", "age, ms", "rows", "tallies",
        "timers due", "commits dropped", "rejected", "late", "restored, rows", "rows/s", "to restore, records",
        "standby lag, records",
    )  # fmt: skip
    partitions = [
        (
            status.partition, status.owner, status.state, status.lag_records, status.clock_ms, status.commit_ms,
            status.age_ms, _list(status.rows), _list(status.tallies), status.timers_due, _list(status.dropped_commits),
            _list(status.rejected), status.late, status.restored_rows, status.restored_rows_per_second,
            status.restore_left_records, status.standby_lag_records,
        )
        for status in seen.partitions
    ]  # fmt: skip
    slots = [
        (
            slot.slot,
            slot.problem or "",
            None if slot.rss_bytes is None else slot.rss_bytes // 2**20,
            slot.cpu_us_per_record,
        )
        for slot in seen.slots
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="5">'
        f"<title>{html.escape(seen.application)}: partitions</title><style>{_STYLE}</style>"
        f"<h1>{html.escape(seen.application)}, as {html.escape(seen.asked)} sees it</h1>"
        f"{_table(heads, partitions)}{_table(('slot', 'problem', 'RSS, MiB', 'CPU, µs a record'), slots)}"
    )


def _list(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in numbers.items())


def _table(heads: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    def cell(value: object) -> str:
        text = "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
        kind = f' class="t {html.escape(text)}"' if isinstance(value, str) else ""
        return f"<td{kind}>{html.escape(text)}</td>"

    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(cell(value) for value in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
