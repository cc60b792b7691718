"""Several titles in one picture: how many views of each were open at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from services.query.core import filters
from services.query.core.answer import About, span
from services.query.core.customers import Admit
from services.query.core.dimensions import normal_text
from services.query.core.filters import Filter
from services.query.core.metrics import METRICS
from services.query.core.problems import wrong
from services.query.core.question import AskedWithin, Question, dimensions_of, selected
from services.query.core.resources.audience import BEGAN_FIELD, Audience, Steps, peak_of, read_for, steps_of
from services.query.core.resources.titles import VIDEO
from services.query.core.sql import statements
from services.query.core.sql.statements import TIME_FIELDS, Statement

#: Titles of one picture.
CURVES_MAX: Final = 10
#: Titles whose curves are compared to find the highest: those with the most views.
_COMPARED_MAX: Final = 200

Row = Mapping[str, Any]


class AskedConcurrency(AskedWithin, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of the titles' audiences."""

    videos: Annotated[
        str,
        msgspec.Meta(
            description=f"JSON: a list of 1 to {CURVES_MAX} video ids; by default those with the most at a time"
        ),
    ] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=CURVES_MAX, description="titles, unless `videos` names them")] = 5


class TitleAudience(msgspec.Struct, frozen=True):
    """One video: its views that were open in the range (`n`), and how many at each of `at_ms`."""

    video_id: str
    #: As views named it last.
    title: str | None
    n: int
    peak: Audience | None
    views: list[int]


class Concurrency(msgspec.Struct, frozen=True):
    """Finished views that were open at a time, by title: the highest peak first. It ends now, also if the range goes on."""

    about: About
    #: Views of all these titles that were open in the range, and how many titles there are: without `videos` all of the range.
    n: int
    titles_n: int
    step_ms: int
    at_ms: list[int]
    titles: list[TitleAudience]


@dataclass(frozen=True)
class ConcurrencyQuestion:
    """What is asked, checked."""

    rows: Question
    steps: Steps
    #: Those that are named; none: the highest.
    videos: tuple[str, ...]
    limit: int


def understood(asked: AskedConcurrency, admit: Admit, now_ms: int, *, days_max: int) -> ConcurrencyQuestion:
    """The question; raises `Wrong`, and what `admit` raises."""
    within = selected(asked, admit, now_ms, days_max=days_max)
    videos = _videos_of(asked.videos) if asked.videos else ()
    of_videos = (
        Filter(dimension=VIDEO, values=videos) if videos else Filter(none_of=Filter(dimension=VIDEO, values=(None,)))
    )
    filters.check(of_videos)
    given = within["filter"]
    rows = Question(
        shape="rows",
        customers=within["customers"],
        metrics=(METRICS["views"],),
        range=read_for(within["range"], now_ms),
        filter=filters.both([one for one in (given, of_videos) if one is not None]),
        by=dimensions_of("by", VIDEO, most=1),
        fields=(BEGAN_FIELD, *TIME_FIELDS),
    )
    return ConcurrencyQuestion(rows, steps_of(within["range"], now_ms), videos, len(videos) or asked.limit)


def _videos_of(text: str) -> tuple[str, ...]:
    try:
        found = msgspec.json.decode(text, type=list[str])
    except msgspec.DecodeError:
        found = []
    if not 1 <= len(found) <= CURVES_MAX:
        raise wrong("videos", f"a JSON list of 1 to {CURVES_MAX} ids of videos")
    return tuple(dict.fromkeys(map(normal_text, found)))


def asked_of(asked: ConcurrencyQuestion) -> Statement:
    """The changes at their steps, of the titles that are listed; and on each row the numbers of all."""
    steps = asked.steps
    video = statements.value_of(asked.rows, asked.rows.by[0])
    condition, parameters = statements.conditions_of(asked.rows)
    within = f"{condition} AND {steps.touches}"
    # Views are counted by their beginning and end first: far fewer rows than views have to be put in order.
    sql = f"""
        WITH titles AS MATERIALIZED (
            SELECT {video} AS video, count(*) AS n FROM views WHERE {within} GROUP BY video
        ), compared AS MATERIALIZED (
            SELECT video, n FROM titles ORDER BY n DESC, video LIMIT {_COMPARED_MAX}
        ), spans AS MATERIALIZED (
            SELECT video, began, ended, count(*) AS views FROM (
                SELECT {video} AS video, {steps.began} AS began, {steps.ended} AS ended FROM views WHERE {within}
            ) AS found WHERE video IN (SELECT video FROM compared) GROUP BY video, began, ended
        ), changes AS MATERIALIZED (
            SELECT video, step, CAST(sum(change) AS bigint) AS change FROM (
                SELECT video, began AS step, views AS change FROM spans
                UNION ALL
                SELECT video, ended, -views FROM spans
            ) AS moved WHERE step < {len(steps.moments_ms):d} GROUP BY video, step
        ), curves AS (
            SELECT video, sum(change) OVER (PARTITION BY video ORDER BY step) AS views FROM changes
        ), peaks AS (
            SELECT video, max(views) AS peak FROM curves GROUP BY video
        ), listed AS (
            SELECT video, n, CAST(coalesce(peak, 0) AS bigint) AS peak FROM compared LEFT JOIN peaks USING (video)
            ORDER BY peak DESC, n DESC, video LIMIT {asked.limit:d}
        )
        SELECT video, step, change, n, peak, (SELECT CAST(sum(n) AS bigint) FROM titles), (SELECT count(*) FROM titles)
        FROM listed LEFT JOIN changes USING (video)
    """  # noqa: S608 - names and numbers of ours
    return Statement(sql, (*parameters, *parameters), ("video", "step", "change", "n", "peak", "views_n", "titles_n"))


def videos_of(asked: ConcurrencyQuestion, rows: Sequence[Row]) -> list[str]:
    """The titles that are listed: the highest peak first, and then those that are named and have no view."""
    found = {row["video"]: (-row["peak"], -row["n"], row["video"]) for row in rows}
    return [*sorted(found, key=lambda video: found[video]), *(video for video in asked.videos if video not in found)]


def answer(asked: ConcurrencyQuestion, rows: Sequence[Row], names: Sequence[Row], about: About) -> Concurrency:
    """The answer that the rows of `asked_of` and the names make."""
    steps = asked.steps
    moments_ms = steps.moments_ms
    named = {row["video"]: row["title"] for row in names}
    by_video: dict[str, list[Row]] = {video: [] for video in videos_of(asked, rows)}
    for row in rows:
        by_video[row["video"]].append(row)
    titles = []
    for video, changes in by_video.items():
        # One that was open between two moments alone has a row without a step.
        views = steps.counted([row for row in changes if row["step"] is not None])
        peak = peak_of([Audience(*one) for one in zip(moments_ms, views, strict=True)])
        titles.append(TitleAudience(video, named.get(video), changes[0]["n"] if changes else 0, peak, views))
    views_n, titles_n = (rows[0]["views_n"], rows[0]["titles_n"]) if rows else (0, 0)
    about = msgspec.structs.replace(about, range=span(steps.range))
    return Concurrency(about, views_n, titles_n, steps.step_ms, moments_ms, titles)
