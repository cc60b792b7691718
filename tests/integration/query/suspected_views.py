"""What tests of suspects share: an hour and the day before it, and in the hour one cohort that is worse by every metric."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from deploy.local.postgres import Postgres as Server
from services.query.core.answer import Figure
from services.query.core.customers import EVERY_CUSTOMER, Customers
from services.query.core.question import Asked, parsed
from services.query.core.question import understood as understood_question
from services.query.core.suspects.answer import Suspect, Suspects
from services.query.core.suspects.question import AskedSuspects, SuspectsQuestion, understood
from services.query.suspecting import Suspecting
from shared.schemas.view import View
from tests.integration.query.querying import Installation, installed
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS, T0_MS, a_view

FROM_MS = T0_MS + 3 * DAY_MS
WITHIN = {"from": str(FROM_MS), "to": str(FROM_MS + HOUR_MS)}
WORSE = {"cdn": "fastly", "asn": "3320", "player_version": "1.2"}
#: Of 6,000 views of the hour and 9,000 of the day before it.
NOW, USUAL = 6_000, 9_000
#: Metrics that are worse when they are lower, and that the cohort has less of.
LOWER = ("bitrate_bps", "experience_score", "smoothness_score", "request_throughput_bps", "spi_good_fraction")


@cache
def viewed(number: int) -> View:
    chance = random.Random(number)
    is_now = number < NOW
    at_ms = FROM_MS + chance.randrange(HOUR_MS) if is_now else FROM_MS - 1 - chance.randrange(DAY_MS)
    cdn, asn, version = (
        chance.choice(values)
        for values in (("fastly", "akamai", "own"), (3320, 3209, 6830, 12322), ("1.2", "1.2", "1.3", "1.4"))
    )
    is_worse = is_now and (cdn, asn, version) == ("fastly", 3320, "1.2")
    stalls = chance.random() < (0.6 if is_worse else 0.1)
    quality = quality_of(number, is_worse=is_worse)
    return a_view(
        chance,
        f"view-{number}",
        customer_id="acme" if number % 3 else "other",
        day=at_ms // DAY_MS,
        first_append_ms=at_ms,
        last_append_ms=at_ms,
        view_start_ms=at_ms,
        view_end_ms=at_ms,
        cdn=cdn,
        asn=asn,
        player_version=version,
        country={3320: "DE", 3209: "DE", 6830: "AT", 12322: "FR"}[asn],
        playback_failed=chance.random() < (0.25 if is_worse else 0.03),
        startup_ms=chance.choice([None, 300, 900, 9_000 if is_worse else 1_000]),
        watch_ms=600_000,
        playing_ms=590_000,
        rebuffer_ms=chance.randrange(20_000) if stalls else 0,
        rebuffer_count=int(stalls),
        deleted=False,
        **quality,
    )


def quality_of(number: int, *, is_worse: bool) -> dict[str, Any]:
    """What is worse when it is lower: of half of the views of the cohort. A tenth of all views has none of it."""
    chance = random.Random(f"quality of {number}")
    if chance.random() < 0.1:
        return {"avg_bitrate_bps": None, "score_view": None, "score_smooth": None, "spi_good": None, "req_bytes": None}
    is_low = is_worse and chance.random() < 0.5
    bitrate_bps = chance.randrange(200_000, 2_000_000) if is_low else chance.randrange(1_500_000, 8_000_000)
    return {
        "avg_bitrate_bps": bitrate_bps,
        "req_bytes": bitrate_bps // 4,
        "req_time_ms": 1_000,
        "score_view": round(chance.uniform(5, 60) if is_low else chance.uniform(45, 100), 2),
        "score_smooth": 44.72 if is_low else chance.choice([100.0, 100.0, 100.0, 89.44]),
        "spi_good": not is_low and chance.random() < 0.9,
        "dropped_frames": chance.randrange(300 if is_low else 30),
    }


@contextmanager
def with_hot_hour(postgres: Server, folder: Path) -> Iterator[Installation]:
    """The hour is hot in Postgres; the day before it, and half of the hour as it was, are in the warehouse."""
    with installed(postgres, folder) as made:
        views = [viewed(number) for number in range(NOW + USUAL)]
        made.in_warehouse(views[NOW // 2 :])
        made.in_postgres(views[:NOW])
        made.settle(FROM_MS // HOUR_MS)
        yield made


def asked(*, customers: Customers = EVERY_CUSTOMER, **given: str) -> SuspectsQuestion:
    found = parsed(AskedSuspects, list({"metric": "playback_failure_fraction", **WITHIN, **given}.items()))
    return understood(found, lambda _: customers, FROM_MS + DAY_MS)


async def suspected(
    installation: Installation, *, customers: Customers = EVERY_CUSTOMER, bad_max: int = 10**6, **given: str
) -> Suspects:
    async with installation.answering() as answering:
        suspecting = Suspecting(answering, bad_max=bad_max, good_max=10 * bad_max)
        return await suspecting.suspects(asked(customers=customers, **given))


def named(one: Suspect) -> dict[str, str | None]:
    return {condition.dimension: condition.value for condition in one.conditions}


async def figures(installation: Installation, filter_: dict[str, Any]) -> tuple[Figure, Figure]:
    """The share of failures now and usually, by the path of all figures."""
    async with installation.answering() as answering:
        found = []
        for from_ms, to_ms in ((FROM_MS, FROM_MS + HOUR_MS), (FROM_MS - DAY_MS, FROM_MS)):
            given = {"metrics": "playback_failure_fraction", "filter": json.dumps(filter_)}
            asked_overall = parsed(Asked, [*given.items(), ("from", str(from_ms)), ("to", str(to_ms))])
            answer = await answering.answer(understood_question(asked_overall, lambda _: Customers(), FROM_MS))
            found.append(answer.metrics["playback_failure_fraction"])  # type: ignore[union-attr]
        return found[0], found[1]
