"""One title: how many watched it over time, which of its parts they saw and saw again, and its quality meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated, Any, Final, Literal

import msgspec

from services.query.core import filters
from services.query.core.answer import About, Figure, Overall, Point, Timeseries
from services.query.core.calendar import DAY_MS, Bucket
from services.query.core.customers import Admit
from services.query.core.dimensions import normal_text
from services.query.core.filters import Filter
from services.query.core.metrics import METRICS
from services.query.core.question import AskedSeries, AskedWithin, Question, understood
from services.query.core.resources.titles.audience import BEGAN_FIELD, Audience, Steps, read_for, steps_of
from services.query.core.resources.titles.titles import VIDEO
from services.query.core.sql import statements
from services.query.core.sql.statements import TIME_FIELDS, Statement
from shared.measures import COUNTED_MS

#: Parts of a video whose audience is counted.
PARTS: Final = 100
#: Views whose played ranges are looked at: the newest ones. More would cost seconds and change nothing that is seen.
RETENTION_VIEWS_MAX: Final = 20_000
#: A position behind this is no place in a video: live players report the time of day.
_POSITION_MS_MAX: Final = DAY_MS
_METRICS: Final = (
    "views,viewers,rebuffer_fraction,startup_ms_p50,playback_failure_fraction,bitrate_bps,experience_score"
)

Row = Mapping[str, Any]


class AskedTitle(AskedWithin, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of one title."""

    metrics: Annotated[str, msgspec.Meta(description="of the quality over time")] = _METRICS
    bucket: Annotated[Bucket | Literal[""], msgspec.Meta(description="by default one that fits the range")] = ""


class Part(msgspec.Struct, frozen=True):
    """A part of the video: views that played it, how often it was played, and views that came as far as its beginning."""

    from_ms: int
    to_ms: int
    views: int
    plays: int
    reached: int


class Retention(msgspec.Struct, frozen=True):
    """`n` views say which parts they played, `reached_n` how far they came; no more than the newest ones are looked at."""

    n: int
    reached_n: int
    is_sampled: bool
    parts: list[Part]


class TitleDetail(msgspec.Struct, frozen=True, omit_defaults=True):
    """One video in a range. `concurrency` has the most finished views that were open at once within each step, up to now.

    Its `at_ms` begin steps of `step_ms`. `peak` is the most of all, and when that was first.
    """

    about: About
    video_id: str
    title: str | None
    series: str | None
    stream_type: str | None
    duration_ms: int | None
    n: int
    metrics: dict[str, Figure]
    step_ms: int
    concurrency: list[Audience]
    peak: Audience | None
    retention: Retention
    bucket: str
    quality: list[Point]


@dataclass(frozen=True)
class TitleQuestion:
    """What is asked, checked: the figures over time, and what single views are read by."""

    quality: Question
    rows: Question
    video: str
    steps: Steps

    @property
    def overall(self) -> Question:
        """The figures of the whole range."""
        return replace(self.quality, shape="overall", buckets=None)


def understood_title(video: str, asked: AskedTitle, admit: Admit, now_ms: int, *, days_max: int) -> TitleQuestion:
    """The question; raises `Wrong`, and what `admit` raises."""
    shared = {name: getattr(asked, name) for name in asked.__struct_fields__}
    quality = understood(AskedSeries(**shared), admit, now_ms, days_max=days_max)
    of_video = Filter(dimension=VIDEO, values=(normal_text(video),))
    filters.check(of_video)
    quality = replace(quality, filter=filters.both([one for one in (quality.filter, of_video) if one is not None]))
    rows = Question(
        shape="rows",
        customers=quality.customers,
        metrics=(METRICS["views"],),
        range=read_for(quality.range, now_ms),
        filter=quality.filter,
        fields=(
            *("video_title", "video_series", "stream_type", "video_duration_ms", BEGAN_FIELD, "max_playhead_ms"),
            *("playback_ranges", *TIME_FIELDS),
        ),
    )
    return TitleQuestion(quality, rows, video, steps_of(quality.range, now_ms))


def asked_of(asked: TitleQuestion) -> list[Statement]:
    """The statements: names; the most at once within each step; played parts; how far views came."""
    condition, parameters = statements.conditions_of(asked.rows)
    steps = asked.steps
    within = f"{condition} AND {COUNTED_MS} < {steps.range.to_ms:d}"
    newest = (
        f"SELECT playback_ranges, max_playhead_ms, row_number() OVER () AS number FROM views WHERE {within}"  # noqa: S608
        f" ORDER BY {COUNTED_MS} DESC LIMIT {RETENTION_VIEWS_MAX}"
    )
    return [
        Statement(
            f"SELECT count(*), arg_max(video_title, {COUNTED_MS}), arg_max(video_series, {COUNTED_MS}),"  # noqa: S608
            f" arg_max(stream_type, {COUNTED_MS}), CAST(median(video_duration_ms) AS bigint),"
            f" CAST(quantile_disc(max_playhead_ms, 0.95) AS bigint) FROM views WHERE {within}",
            tuple(parameters),
            ("n", "title", "series", "stream_type", "duration_ms", "reached_ms"),
        ),
        Statement(
            f"""
            WITH numbers AS (SELECT 1 AS number), spans AS MATERIALIZED (
                SELECT 1 AS number, {steps.open} FROM views WHERE {condition} AND {steps.touches}
            ), {steps.most_at_once(1)}
            SELECT step, views, at_ms FROM most
            """,  # noqa: S608
            tuple(parameters),
            ("step", "views", "at_ms"),
        ),
        Statement(
            f"SELECT number, playback_ranges FROM ({newest}) AS newest WHERE len(playback_ranges) > 0",  # noqa: S608
            tuple(parameters),
            ("number", "ranges"),
        ),
        Statement(
            f"SELECT max_playhead_ms, count(*) FROM ({newest}) AS newest WHERE max_playhead_ms > 0 GROUP BY ALL",  # noqa: S608
            tuple(parameters),
            ("reached_ms", "views"),
        ),
    ]


def retention(length_ms: int | None, n: int, ranges: Sequence[Row], reached: Sequence[Row]) -> Retention:
    """The audience of each part; `length_ms` is the video's."""
    reached_n = sum(int(row["views"]) for row in reached)
    if not length_ms or length_ms > _POSITION_MS_MAX:
        return Retention(len(ranges), reached_n, n > RETENTION_VIEWS_MAX, [])
    width = max(1, -(-length_ms // PARTS))
    parts = -(-length_ms // width)
    plays, views, came = [0] * (parts + 1), [0] * (parts + 1), [0] * parts
    for row in ranges:
        spans = [span for one in row["ranges"] if (span := _parts_of(one, width, parts)) is not None]
        for first, last in spans:
            plays[first] += 1
            plays[last + 1] -= 1
        for first, last in _joined(spans):
            views[first] += 1
            views[last + 1] -= 1
    for row in reached:
        last = min(parts - 1, int(row["reached_ms"]) // width)
        came[last] += int(row["views"])
    reached_by = list(accumulate(reversed(came)))[::-1]
    counted = zip(accumulate(views[:-1]), accumulate(plays[:-1]), reached_by, strict=True)
    return Retention(
        len(ranges),
        reached_n,
        n > RETENTION_VIEWS_MAX,
        [Part(number * width, min((number + 1) * width, length_ms), *one) for number, one in enumerate(counted)],
    )


def _parts_of(one: Sequence[int], width: int, parts: int) -> tuple[int, int] | None:
    """The first and last part that a played range touches; None for what is no range of the video."""
    if len(one) != 2 or not 0 <= one[0] < one[1]:
        return None
    first, last = one[0] // width, (one[1] - 1) // width
    return (first, min(last, parts - 1)) if first < parts else None


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same parts, each once."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def answer(
    asked: TitleQuestion, overall: Overall, quality: Timeseries, rows: Sequence[Sequence[Row]], about: About
) -> TitleDetail:
    """The answer that the figures and the rows of the statements make."""
    (named,), most, ranges, reached = rows
    return TitleDetail(
        about=msgspec.structs.replace(about, range=overall.about.range),
        video_id=asked.video,
        title=named["title"],
        series=named["series"],
        stream_type=named["stream_type"],
        duration_ms=named["duration_ms"],
        n=overall.n,
        metrics=overall.metrics,
        step_ms=asked.steps.step_ms,
        concurrency=asked.steps.curve(most),
        peak=asked.steps.peak(most),
        retention=retention(named["duration_ms"] or named["reached_ms"], named["n"], ranges, reached),
        bucket=quality.bucket,
        quality=quality.points,
    )
