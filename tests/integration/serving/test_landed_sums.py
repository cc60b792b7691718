"""Slices of many customers together, on a real Postgres: they are a recount of the documents of one landed minute."""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from contextlib import closing
from threading import Event
from typing import Any, Final, TypeVar
from uuid import uuid4

import msgspec
import psycopg
import pytest

from deploy.local.postgres import Postgres
from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.dashboard.live.landed.slices import AFTER_MS, LandedSlices
from services.dashboard.live.landed.sums import BACK_MINUTES, LandedSlice, LandedSums, PostgresLanded
from services.dashboard.live.slices import FIELDS, GAUGES
from services.finalizer.serving.database import Serving
from services.rim.database import pool
from shared.schemas.live import OTHER, SLICE_VALUES_MAX, UNKNOWN
from shared.schemas.live_minute import GATHERED, MINUTE_MS, STEPS, WHOLE, LiveMinute

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

MINUTE: Final = 29_000_000
CUSTOMERS: Final = [f"customer-{number}" for number in range(30)]
OWN: Final = CustomerScope(own=frozenset(CUSTOMERS[:7]))
BUT: Final = CustomerScope(all_but=frozenset(CUSTOMERS[:25]))
#: Of more titles than are named, and of pairs in either order.
VALUES: Final = {
    "cdn": ["fastly", "akamai", 'a"b', "c%d'", UNKNOWN, OTHER],
    "video_title": [*(f"title {number:02}" for number in range(40)), OTHER],
    "country": ["DE", "FR", UNKNOWN],
    "cdn,country": ["fastly\x1fDE", "fastly\x1fFR", "fastlyx\x1fDE", "akamai\x1fDE", f"{OTHER}\x1f{OTHER}"],
    "video_title,cdn": [*(f"title {number:02}\x1ffastly" for number in range(40)), f"{OTHER}\x1f{OTHER}"],
    "video_title,country": ["title 00\x1fDE"],
}
T = TypeVar("T")
Documents = dict[tuple[str, str, int], LiveMinute]


@functools.cache
def documents() -> Documents:
    chance = random.Random(5)

    def figures() -> dict[str, int]:
        return {field: chance.randrange(1, 60 * STEPS) for field in FIELDS if chance.random() < 0.7}

    found: Documents = {}
    for customer in CUSTOMERS:
        for minute in range(MINUTE - 3, MINUTE + 1):
            # Of one minute nothing is known, of another only a part.
            known = {MINUTE - 2: 0, MINUTE - 1: STEPS // 2}.get(minute, STEPS)
            found[customer, WHOLE, minute] = LiveMinute(steps=known, values={"": figures()})
            for dimension, values in VALUES.items():
                named = {value: figures() for value in values if chance.random() < 0.8}
                found[customer, dimension, minute] = LiveMinute(steps=known, values=named)
    found[GATHERED, WHOLE, MINUTE] = LiveMinute(steps=STEPS, values={"": dict.fromkeys(FIELDS, 7 * STEPS)})
    # Newer, and without anybody who watches.
    found[GATHERED, "rejected", MINUTE + 1] = LiveMinute(values={"invalid": {"count": 3}})
    found[CUSTOMERS[0], WHOLE, MINUTE + 1] = LiveMinute(values={"": {"received": 3}})
    return found


@pytest.fixture(scope="module")
def dsn(postgres: Postgres) -> str:
    name = postgres.create_database(f"landed_{uuid4().hex}")
    with closing(Serving(name, away_seconds_max=20, stop=Event())) as serving:
        serving.open()
    with psycopg.connect(name) as connection:
        for key, document in documents().items():
            connection.execute(
                "INSERT INTO serving.live_minutes VALUES (%s, %s, %s, %s)",
                (*key, msgspec.json.encode(document).decode()),
            )
    return name


def asked(dsn: str, ask: Callable[[PostgresLanded], Awaitable[T]]) -> T:
    async def found() -> T:
        postgres = pool.Postgres(dsn, service="test", connections_max=1, seconds_max=30)
        await postgres.open()
        try:
            return await ask(PostgresLanded(postgres))
        finally:
            await postgres.close()

    return asyncio.run(found())


def whole_of(dsn: str, scope: CustomerScope, after: int = 0, until: int = MINUTE + 1) -> LandedSums | None:
    return asked(dsn, lambda landed: landed.whole(scope, after, until))


def slice_of(dsn: str, scope: CustomerScope, name: str) -> LandedSlice:
    async def ask(landed: PostgresLanded) -> LandedSlice:
        whole = await landed.whole(scope, 0, MINUTE)
        assert whole is not None
        return await landed.of_slice(scope, name, whole)

    return asked(dsn, ask)


def recount(scope: CustomerScope, pick: Callable[[str, str], str | None], minute: int = MINUTE) -> dict[str, Any]:
    """The sums of what `pick` gives a name, by dimension and value of a document."""
    sums: dict[str, dict[str, int]] = {}
    for (customer, dimension, at), document in documents().items():
        if at != minute or customer == GATHERED or not scope.has(customer):
            continue
        for value, figures in document.values.items():
            if (name := pick(dimension, value)) is not None:
                into = sums.setdefault(name, dict.fromkeys(FIELDS, 0))
                for field in FIELDS:
                    into[field] += figures.get(field, 0)
    return sums


def means(sums: dict[str, int], steps: int = STEPS) -> dict[str, int]:
    return {field: round(figure / steps) if field in GAUGES else figure for field, figure in sums.items()}


def largest(sums: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Those that are named, and all others."""
    order = sorted((one for one in sums if one not in (OTHER, UNKNOWN)), key=lambda one: -sums[one]["viewers_now"])
    found = {value: sums[value] for value in (*order[:SLICE_VALUES_MAX], UNKNOWN) if value in sums}
    rest = [sums[value] for value in (*order[SLICE_VALUES_MAX:], OTHER) if value in sums]
    return found | ({OTHER: {field: sum(one[field] for one in rest) for field in FIELDS}} if rest else {})


@pytest.mark.parametrize("scope", [OWN, BUT, EVERYTHING], ids=["own", "all but", "everything"])
def test_sums_are_those_of_the_customers_of_a_scope(dsn: str, scope: CustomerScope) -> None:
    found = whole_of(dsn, scope)
    assert found is not None
    assert (found.minute, found.steps) == (MINUTE, STEPS)
    expected = {}
    for dimension in ("cdn", "video_title", "country"):
        of_dimension = recount(scope, lambda of, value: value if of == dimension else None)  # noqa: B023
        for value, sums in largest(of_dimension).items():
            expected[f"{dimension}={value}"] = means(sums)
        if scope.is_everything:
            # Customers without room are counted by no dimension.
            others = expected.setdefault(f"{dimension}={OTHER}", dict.fromkeys(FIELDS, 0))
            expected[f"{dimension}={OTHER}"] = {
                field: figure + (7 if field in GAUGES else 7 * STEPS) for field, figure in others.items()
            }
    assert found.sums == expected


def test_the_newest_minute_with_slices_is_taken_unless_it_is_known_or_old(dsn: str) -> None:
    assert whole_of(dsn, OWN, after=MINUTE) is None
    assert whole_of(dsn, OWN, until=MINUTE + BACK_MINUTES) is None
    before = whole_of(dsn, OWN, until=MINUTE - 1)
    assert before is not None
    assert (before.minute, before.steps) == (MINUTE - 1, STEPS // 2)
    found = whole_of(dsn, OWN, after=MINUTE - 1, until=MINUTE + BACK_MINUTES - 1)
    assert found is not None
    assert found.minute == MINUTE


def test_a_slice_has_its_pairs_in_either_order_and_its_minutes(dsn: str) -> None:
    found = slice_of(dsn, BUT, "cdn=fastly")
    own = recount(BUT, lambda of, value: "cdn=fastly" if (of, value) == ("cdn", "fastly") else None)
    expected = {"cdn=fastly": means(own["cdn=fastly"])}
    for value, sums in recount(
        BUT, lambda of, value: value[7:] if of == "cdn,country" and value.startswith("fastly\x1f") else None
    ).items():
        expected[f"cdn,country=fastly\x1f{value}"] = means(sums)
    titles = recount(
        BUT, lambda of, value: value[:-7] if of == "video_title,cdn" and value.endswith("\x1ffastly") else None
    )
    for value, sums in largest(titles).items():
        expected[f"cdn,video_title=fastly\x1f{value}"] = means(sums)
    assert found.sums == expected
    for at, (minute, steps) in enumerate(
        [(MINUTE - 3, STEPS), (MINUTE - 2, 0), (MINUTE - 1, STEPS // 2), (MINUTE, STEPS)]
    ):
        sums = recount(BUT, lambda of, value: "" if (of, value) == ("cdn", "fastly") else None, minute)[""]
        figures = {field: values[at] for field, values in found.series.items()}
        assert figures == (means(sums, steps) if steps else dict.fromkeys(FIELDS))
    others = recount(BUT, lambda of, value: value if of == "cdn" else None)[OTHER]
    assert found.others_now == others["viewers_now"] // STEPS
    assert slice_of(dsn, BUT, f"cdn={UNKNOWN}").others_now == 0


@pytest.mark.parametrize("name", ["cdn,country=fastly\x1fDE", "country,cdn=DE\x1ffastly"])
def test_the_figures_of_a_pair_are_its_own_in_either_order(dsn: str, name: str) -> None:
    found = slice_of(dsn, OWN, name)
    pair = recount(OWN, lambda of, value: "" if (of, value) == ("cdn,country", "fastly\x1fDE") else None)[""]
    assert {field: values[-1] for field, values in found.series.items()} == means(pair)
    assert f"{name.partition('=')[0].partition(',')[0]}={name.partition('=')[2].partition(chr(31))[0]}" in found.sums


@pytest.mark.parametrize("name", ["cdn=unheard of", "os=x", "password=x", "cdn=a\0b", "cdn", "customer_id,cdn=a\x1fb"])
def test_any_name_may_be_asked_for(dsn: str, name: str) -> None:
    found = slice_of(dsn, OWN, name)
    assert found.series["viewers_now"][-1] == 0
    assert not any(sums["viewers_now"] for sums in found.sums.values())


def test_slices_stay_while_postgres_needs_too_long(dsn: str) -> None:
    asyncio.run(_kept_while_it_is_slow(dsn))


async def _kept_while_it_is_slow(dsn: str) -> None:
    now_ms = (MINUTE + 1) * MINUTE_MS + AFTER_MS
    postgres = pool.Postgres(dsn, service="test", connections_max=2, seconds_max=1)
    await postgres.open()
    try:
        slices = LandedSlices(PostgresLanded(postgres), now_ms=lambda: now_ms)
        await slices.wait(OWN, "", 20)
        before = slices.newest(OWN, "").slices
        now_ms += MINUTE_MS
        with psycopg.connect(dsn) as other:
            # Postgres answers, and the minutes cannot be read as long as this is held.
            other.execute("LOCK TABLE serving.live_minutes IN ACCESS EXCLUSIVE MODE")
            one = slices.newest(OWN, "")
            assert (one.state, one.slices) == ("by_minute", before)
            assert one.asking is not None
            await asyncio.wait({one.asking}, timeout=20)
        assert (one.state, one.slices, one.as_of_ms) == ("failed", before, (MINUTE + 1) * MINUTE_MS)
    finally:
        await postgres.close()
