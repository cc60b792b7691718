"""The questions: as the service is asked them, and as ClickHouse is."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bench.query.inputs import DAY_MS, DAYS, FIRST_DAY
from services.query.core.question import AnyAsked, AskedBreakdown, AskedSeries

FIRST_MS: Final = FIRST_DAY * DAY_MS
LAST_MS: Final = (FIRST_DAY + DAYS) * DAY_MS

#: Values of the filters: a run asks with one after the other, so that no answer is one of before.
DEVICES: Final = ("phone", "tv", "desktop", "tablet")
TYPES: Final = ("live", "vod")
COUNTRIES: Final = ("DE", "US", "FR", "GB", "IN", "BR", "JP", "ES", "IT", "PL")


@dataclass(frozen=True)
class Asked:
    """One question in both forms. The goals are ms; None: none."""

    name: str
    p50_goal_ms: float | None
    p95_goal_ms: float | None
    asked: AnyAsked
    sql: str


def all_questions(number: int) -> list[Asked]:
    """The questions of one round."""
    device, kind = DEVICES[number % 4], TYPES[number % 2]
    country = COUNTRIES[number % 10]
    # Rounds differ by an hour of the range: no two ask the same.
    first_ms = FIRST_MS + (number % 24) * 3_600_000
    days = f"hour >= {first_ms // 3_600_000} AND hour < {LAST_MS // 3_600_000}"
    week_ms = LAST_MS - 7 * DAY_MS - (number % 24) * 3_600_000
    week = f"hour >= {week_ms // 3_600_000} AND hour < {week_ms // 3_600_000 + 168}"
    both = _filter(device=device, stream_type=kind)
    where = f"device = '{device}' AND stream_type = '{kind}'"
    within: dict[str, Any] = {"from_": str(first_ms), "to": str(LAST_MS)}
    of_week: dict[str, Any] = {"from_": str(week_ms), "to": str(week_ms + 7 * DAY_MS)}
    ratio = "sum(rebuffer_ms) / sum(watch_ms), countIf(playback_failed) / count()"
    return [
        Asked(
            "breakdown by two dimensions, two filters, 30 days",
            300,
            800,
            AskedBreakdown(
                by="cdn,country",
                metrics="views,rebuffer_fraction,playback_failure_fraction",
                filter=both,
                limit=50,
                **within,
            ),
            f"SELECT cdn, country, count(), {ratio} FROM views WHERE {days} AND {where} GROUP BY cdn, country",  # noqa: S608 - ours
        ),
        Asked(
            "… with an exact p95",
            None,
            None,
            AskedBreakdown(by="cdn,country", metrics="views,startup_ms_p95", filter=both, limit=50, **within),
            f"SELECT cdn, country, count(), quantileExact(0.95)(startup_ms) FROM views WHERE {days} AND {where}"  # noqa: S608 - ours
            " GROUP BY cdn, country",
        ),
        Asked(
            "… by two dimensions of 20,000 × 200 values",
            None,
            None,
            AskedBreakdown(by="video_title,asn", metrics="views,rebuffer_fraction", filter=both, limit=50, **within),
            f"SELECT video_title, asn, count() AS n, sum(rebuffer_ms) / sum(watch_ms) FROM views WHERE {days} AND {where}"  # noqa: S608 - ours
            " GROUP BY video_title, asn ORDER BY n DESC LIMIT 50",
        ),
        Asked(
            "series by hour, two filters, 7 days",
            100,
            None,
            AskedSeries(
                bucket="hour",
                metrics="views,rebuffer_fraction,playback_failure_fraction",
                filter=_filter(country=country, device=device),
                **of_week,
            ),
            f"SELECT hour, count(), {ratio} FROM views WHERE {week} AND country = '{country}' AND device = '{device}'"  # noqa: S608 - ours
            " GROUP BY hour",
        ),
    ]


def _filter(**values: str) -> str:
    parts = [{"dimension": name, "in": [value]} for name, value in values.items()]
    return msgspec.json.encode({"and": parts}).decode()
