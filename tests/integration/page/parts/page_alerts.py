"""What the alerts' screens show: minutes in which viewers of one CDN wait, and an incident of them, as the services land both."""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import msgspec
import psycopg

from services.alerts.store import incidents, rules, schema
from services.alerts.store.rules import StoredRule
from shared.schemas.alerts.event import AlertEvent, SuspectSlice
from shared.schemas.live_minute import STEPS, LiveMinute, LiveSteps
from tests.unit.alerts.events import EVIDENCE, event

T = TypeVar("T")

CUSTOMER: Final = "acme"
MINUTES: Final = 90
#: Another test may have landed a day of minutes before.
_LAND: Final = """
    INSERT INTO serving.{table} VALUES (%s, %s, %s, %s)
    ON CONFLICT (customer_id, dimension, minute) DO UPDATE SET document = excluded.document
"""
#: Minutes before now in which a fifth of the viewers of fastly wait.
BAD: Final = range(20, 25)


def land_minutes(dsn: str, now_ms: int, minutes: int = MINUTES) -> None:
    """Lands so many minutes before `now_ms` in place of what other tests say of them."""
    rows: dict[str, list[tuple[str, str, int, str]]] = {"live_minutes": [], "live_steps": []}
    for back in range(1, minutes + 1):
        hits = 1_200 if back in BAD else 12
        figures = {
            "": {"": {"viewers_now": 12_000, "rebuffering_now": hits}},
            "cdn": {"fastly": {"viewers_now": 6_000, "rebuffering_now": hits}, "akamai": {"viewers_now": 6_000}},
        }
        for dimension, values in figures.items():
            minute = LiveMinute(steps=0 if dimension else STEPS, values=values)
            steps = LiveSteps(heard=[] if dimension else [1] * STEPS, values=_by_step(values))
            for table, document in (("live_minutes", minute), ("live_steps", steps)):
                row = (CUSTOMER, dimension, now_ms // 60_000 - back, msgspec.json.encode(document).decode())
                rows[table].append(row)
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        for table, of_table in rows.items():
            cursor.executemany(_LAND.format(table=table).encode(), of_table)


def landed(dsn: str, now_ms: int) -> AlertEvent:
    """Lands them; the incident's opening."""
    schema.migrate(dsn)
    land_minutes(dsn, now_ms)
    opened_ms = (now_ms // 60_000 - BAD.stop) * 60_000
    where = msgspec.structs.replace(EVIDENCE, slice={"cdn": "fastly"}, at_ms=opened_ms)
    opened = event(
        customer_id=CUSTOMER, rule_name="Rebuffering", at_ms=opened_ms, opened_ms=opened_ms, last_ms=opened_ms, slices=[where],
        suspects=[SuspectSlice(slice={"cdn": "fastly"}, explains=0.97, share=0.5, value=0.2, of_all=2_000)],
    )  # fmt: skip
    land(dsn, opened)
    return opened


def land(dsn: str, *changes: AlertEvent) -> None:
    """Lands changes of incidents."""
    _apart(_land(dsn, changes))


def open_behind_others(dsn: str, now_ms: int, customer_id: str, others: int) -> AlertEvent:
    """Lands an incident that is open for hours, and so many that began later and are over; the opening of the first."""
    begin_ms = now_ms - 5 * 3_600_000
    opened = event(
        customer_id=customer_id,
        incident_id=f"{customer_id}-first",
        rule_name="Waits",
        at_ms=begin_ms,
        opened_ms=begin_ms,
    )
    begun_ms = [begin_ms + 60_000 * (number + 1) for number in range(others)]
    over = [
        event(
            "closed", customer_id=customer_id, incident_id=f"{customer_id}-{number:02}", rule_name=f"Flaps {number}",
            at_ms=began_ms + 30_000, opened_ms=began_ms,
        )
        for number, began_ms in enumerate(begun_ms)
    ]  # fmt: skip
    land(dsn, opened, *over)
    return opened


def many_rules(dsn: str, customer_id: str, rows: int) -> None:
    """So many rules of a customer, each with a name of its own."""
    body = {
        "customer": customer_id,
        "metric": "rebuffering",
        "condition": "threshold",
        "threshold": 0.05,
        "receivers": [],
    }
    with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO alerts.rules (customer_id, body, changed_by) VALUES (%s, %s, 'ada')",
            [(customer_id, msgspec.json.encode(body | {"name": f"Rule {number}"}).decode()) for number in range(rows)],
        )


def _by_step(values: dict[str, dict[str, int]]) -> dict[str, dict[str, list[int]]]:
    return {
        value: {field: [total // STEPS] * STEPS for field, total in fields.items()} for value, fields in values.items()
    }


def _apart(work: Coroutine[Any, Any, T]) -> T:
    """Playwright has a loop of its own in this thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _land(dsn: str, changes: Sequence[AlertEvent]) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        for one in changes:
            await incidents.land(connection, one, now_ms=one.at_ms)


def rules_of(dsn: str) -> list[StoredRule]:
    """The rules that are stored."""

    async def read() -> list[StoredRule]:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            return await rules.rules_of(connection, None, rows_max=1_000)

    return _apart(read())
