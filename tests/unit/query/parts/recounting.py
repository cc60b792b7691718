"""Answers in plain Python over a list of views, written from docs/view.md alone, and views to ask about."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from services.query.core.filters import Filter
from services.query.core.question import Question
from shared.schemas.view import View

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
#: 2026-03-27 00:00 UTC: the clocks of Europe change two days later.
T0_MS = 1_774_569_600_000

Views = Sequence[View]


def a_view(chance: random.Random, name: str, revision: int = 1, **fields: Any) -> View:
    """A view of any measures within four days of `T0_MS`; its day and customer depend on its name alone."""
    of_name = random.Random(name)
    first_ms = T0_MS + of_name.randrange(4 * DAY_MS)
    last_ms = first_ms + chance.choice([0, chance.randrange(HOUR_MS), chance.randrange(20 * HOUR_MS)])
    has_scores, has_requests, has_scale = (chance.random() < 0.6 for _ in range(3))
    given: dict[str, Any] = {
        "customer_id": of_name.choice(["acme", "acme", "other"]),
        "source": of_name.choice(["mux", "cmcd", "native"]),
        "day": first_ms // DAY_MS,
        "first_append_ms": first_ms,
        "last_append_ms": last_ms,
        "view_start_ms": first_ms,
        "view_end_ms": last_ms + chance.choice([0, -chance.randrange(HOUR_MS), 30 * DAY_MS, -30 * DAY_MS]),
        "end_reason": chance.choice(["clean", "timeout", "error"]),
        "viewer_id": chance.choice([None, "viewer", "x"]),
        "viewer_user_id": chance.choice([None, None, "user", "viewer"]),
        "country": chance.choice([None, "DE", "FR", "x" * 150, "x" * 160, "zero\0character"]),
        "cdn": chance.choice([None, "akamai", "fastly", "o'; DROP TABLE views; --", ""]),
        "player_version": chance.choice([None, "1.2", "1.3"]),
        "asn": chance.choice([None, 3320, 3209]),
        "custom": chance.choice([{}, {"plan": "gold"}, {"plan": "silver", "a 'b\"": "1"}]),
        "is_bot": chance.random() < 0.1,
        "startup_ms": chance.choice([None, 0, 1, chance.randrange(20_000), 9_000_000_000_000]),
        "startup_unknown": chance.choice([None, "not_started", "first_frame_lost"]),
        "startup_failed": chance.random() < 0.2,
        "playback_failed": chance.random() < 0.2,
        "ebvs": chance.random() < 0.2,
        "view_dropped": chance.random() < 0.2,
        "deleted": chance.random() < 0.1,
        "score_view": round(100 * chance.random(), 2) if has_scores else None,
        "score_smooth": chance.choice([0.0, 0.01, 4.99, 5.0, 99.99, 100.0]) if has_scores else None,
        "avg_bitrate_bps": chance.choice([None, 0, chance.randrange(1, 20_000_000)]),
        "spi_good": chance.random() < 0.5 if has_scores else None,
        "req_count": chance.randrange(10, 50) if has_requests else None,
        "req_failed": chance.randrange(10) if has_requests else None,
        "req_bytes": chance.choice([None, chance.randrange(10**9)]) if has_requests else None,
        "req_time_ms": chance.randrange(1, 10**5) if has_requests else None,
        "ttfb_sum_ms": chance.randrange(10**4) if has_requests else None,
        "upscale_integral": 1000 * chance.random() if has_scale else None,
        "scale_time_ms": chance.randrange(1, 10**5) if has_scale else None,
        "dropped_frames": chance.choice([None, chance.randrange(100)]),
        "live_latency_ms_avg": chance.choice([None, chance.randrange(30_000)]),
        "bitrate_integral": chance.choice([0, 1 << 60]),
        "beacon_count": 3,
        **{
            field: chance.choice([0, chance.randrange(1_000_000), 9_000_000_000_000])
            for field in ("watch_ms", "playing_ms", "rebuffer_count", "rebuffer_ms", "seek_count", "seek_ms")
        },
        "bitrate_time_ms": chance.choice([0, chance.randrange(10**6)]),
        **fields,
    }
    return View(schema_version=1, view_id=name, revision=revision, **given)


def counts_at(view: View) -> int:
    """When it counts: at its end, never more than an hour after its last beacon came or a day before the first."""
    return max(min(view.view_end_ms, view.last_append_ms + HOUR_MS), view.first_append_ms - DAY_MS)


def began_at(view: View) -> int:
    """From when on it was open: never more than a day before its first beacon came."""
    return max(view.view_start_ms, view.first_append_ms - DAY_MS)


def ratio(above: float, below: float) -> float | None:
    return above / below if below else None


def known(views: Views, field: str) -> list[Any]:
    return [value for view in views if (value := getattr(view, field)) is not None]


def ranked(values: Iterable[Any], rank: float) -> Any:
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(rank * len(ordered))) - 1] if ordered else None


def _sum(views: Views, field: str) -> Any:
    return sum(getattr(view, field) or 0 for view in views)


def _started(view: View) -> bool:
    return view.startup_ms is not None or view.startup_unknown in {"start_lost", "first_frame_lost"}


FIGURES: dict[str, Callable[[Views], Any]] = {
    "views": len,
    "viewers": lambda views: len({viewer for view in views if (viewer := view.viewer_user_id or view.viewer_id)}),
    "started": lambda views: sum(map(_started, views)),
    "exit_before_start_fraction": lambda views: ratio(_sum(views, "ebvs"), len(views)),
    "startup_failure_fraction": lambda views: ratio(_sum(views, "startup_failed"), len(views)),
    "playback_failure_fraction": lambda views: ratio(_sum(views, "playback_failed"), len(views)),
    "view_dropped_fraction": lambda views: ratio(_sum(views, "view_dropped"), len(views)),
    "playback_failures": lambda views: _sum(views, "playback_failed"),
    "watch_ms": lambda views: _sum(views, "watch_ms"),
    "playing_ms": lambda views: _sum(views, "playing_ms"),
    "rebuffer_fraction": lambda views: ratio(_sum(views, "rebuffer_ms"), _sum(views, "watch_ms")),
    "rebuffer_ratio": lambda views: ratio(
        _sum(views, "rebuffer_ms"), _sum(views, "rebuffer_ms") + _sum(views, "playing_ms")
    ),
    "rebuffers_per_minute": lambda views: ratio(60_000 * _sum(views, "rebuffer_count"), _sum(views, "watch_ms")),
    "seek_latency_ms": lambda views: ratio(_sum(views, "seek_ms"), _sum(views, "seek_count")),
    "bitrate_bps": lambda views: ratio(_sum(views, "bitrate_integral"), _sum(views, "bitrate_time_ms")),
    "upscale_fraction": lambda views: ratio(_sum(views, "upscale_integral"), _sum(views, "scale_time_ms")),
    "request_latency_ms": lambda views: ratio(
        _sum(views, "ttfb_sum_ms"), _sum(views, "req_count") - _sum(views, "req_failed") - _sum(views, "req_canceled")
    ),
    "request_throughput_bps": lambda views: ratio(
        8_000 * _sum(views, "req_bytes"), sum(view.req_time_ms or 0 for view in views if view.req_bytes is not None)
    ),
    "dropped_frames": lambda views: _sum(views, "dropped_frames"),
    "dropped_frames_per_minute": lambda views: ratio(
        60_000 * _sum(views, "dropped_frames"),
        sum(view.playing_ms for view in views if view.dropped_frames is not None),
    ),
    "experience_score": lambda views: ratio(_sum(views, "score_view"), len(known(views, "score_view"))),
    "spi_good_fraction": lambda views: ratio(_sum(views, "spi_good"), len(known(views, "spi_good"))),
    "startup_ms_p50": lambda views: ranked(known(views, "startup_ms"), 0.5),
    "startup_ms_p95": lambda views: ranked(known(views, "startup_ms"), 0.95),
    "live_latency_ms_p90": lambda views: ranked(known(views, "live_latency_ms_avg"), 0.9),
}


def value_of(view: View, name: str) -> str | None:
    """The value of a dimension."""
    found: Any
    if name.startswith("custom."):
        found = view.custom.get(name.removeprefix("custom."))
    elif name == "viewer":
        found = view.viewer_user_id or view.viewer_id
    else:
        found = getattr(view, {"customer": "customer_id", "exit_before_start": "ebvs"}.get(name, name))
    if isinstance(found, bool):
        return str(found).lower()
    return None if found is None else str(found)[:100].replace("\0", "\ufffd")


def holds(view: View, one: Filter | None) -> bool:
    """Whether a filter holds of a view."""
    if one is None:
        return True
    if one.none_of is not None:
        return not holds(view, one.none_of)
    if one.all_of is not None:
        return all(holds(view, part) for part in one.all_of)
    if one.any_of is not None:
        return any(holds(view, part) for part in one.any_of)
    if one.number is not None:
        number = getattr(view, one.number)
        is_below = one.below is None or (number is not None and number < one.below)
        return number is not None and is_below and (one.at_least is None or number >= one.at_least)
    assert one.dimension is not None
    value = value_of(view, one.dimension)
    if one.contains is not None:
        return value is not None and one.contains.lower() in value.lower()
    return value in (one.values or ())


def wanted(question: Question, views: Iterable[View]) -> list[View]:
    """The views of a question."""
    return [
        view
        for view in views
        if not view.deleted
        and question.range.from_ms <= counts_at(view) < question.range.to_ms
        and question.customers.has(view.customer_id)
        and holds(view, question.filter)
    ]


def figures(question: Question, views: Views) -> dict[str, Any]:
    """The metrics of a question over one group."""
    return {metric.name: FIGURES[metric.name](views) for metric in question.metrics}


def groups(question: Question, views: Views) -> list[tuple[str, tuple[str | None, ...], int, dict[str, Any]]]:
    """The groups of a breakdown, as (kind, key, views, figures)."""
    by_key: dict[tuple[str | None, ...], list[View]] = {}
    for view in views:
        by_key.setdefault(tuple(value_of(view, one.name) for one in question.by), []).append(view)
    alone = {key: of_key for key, of_key in by_key.items() if key == (None,)}
    sign = 1 if question.is_ascending else -1

    def place(key: tuple[str | None, ...]) -> Any:
        value = FIGURES[question.order_by.name](by_key[key])
        names = tuple((name is not None, name or "") for name in key)
        return value is None, sign * (value or 0), -len(by_key[key]), names

    order = sorted((key for key in by_key if key not in alone), key=place)
    many = [key for key in order if len(by_key[key]) >= question.views_min]
    listed = many[: question.limit]
    rest = [view for key, of_key in by_key.items() if key not in listed and key not in alone for view in of_key]
    found = [
        (
            "unknown" if all(name is None for name in key) else "value",
            key,
            len(by_key[key]),
            figures(question, by_key[key]),
        )
        for key in listed
    ]
    found += [("unknown", key, len(of_key), figures(question, of_key)) for key, of_key in alone.items()]
    if rest:
        found.append(("other", (None,) * len(question.by), len(rest), figures(question, rest)))
    return found


def points(question: Question, views: Views) -> dict[int, tuple[int, dict[str, Any]]]:
    """The points of a series that have views, by the start of their bucket (cut to the range)."""
    assert question.buckets is not None
    by_start: dict[int, list[View]] = {}
    for view in views:
        start = max(_start(counts_at(view), question), question.range.from_ms)
        by_start.setdefault(start, []).append(view)
    return {start: (len(of_start), figures(question, of_start)) for start, of_start in by_start.items()}


def _start(at_ms: int, question: Question) -> int:
    assert question.buckets is not None
    zone, bucket = question.buckets.zone, question.buckets.bucket
    local = datetime.fromtimestamp(at_ms / 1_000, UTC).astimezone(zone)
    if bucket in {"day", "week", "month"}:
        day = local.date()
        if bucket == "week":
            day -= timedelta(days=day.weekday())
        if bucket == "month":
            day = day.replace(day=1)
        return round(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp() * 1_000)
    width = {"minute": 60_000, "5minutes": 300_000, "15minutes": 900_000, "hour": HOUR_MS}[bucket]
    # Clocks that change within the range do not move hours.
    ahead = datetime.fromtimestamp(question.range.from_ms / 1_000, UTC).astimezone(zone).utcoffset()
    assert ahead is not None
    offset_ms = round(ahead.total_seconds() * 1_000)
    return (at_ms + offset_ms) // width * width - offset_ms


def distributed(question: Question, views: Views) -> tuple[Counter[int | None], int]:
    """Values by bucket of 1.02, or scores by 5 points, and how many views have none."""
    assert question.field is not None
    values = known(views, question.field)
    if question.field.startswith("score_"):
        return Counter(math.floor(value / 5) for value in values), len(views) - len(values)
    return Counter(math.floor(math.log(value) / math.log(1.02)) if value else None for value in values), len(
        views
    ) - len(values)
