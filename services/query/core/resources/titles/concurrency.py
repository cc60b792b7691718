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
from services.query.core.resources.titles.audience import BEGAN_FIELD, Audience, Steps, read_for, steps_of
from services.query.core.resources.titles.titles import VIDEO
from services.query.core.sql import statements
from services.query.core.sql.statements import TIME_FIELDS, Statement

#: Titles of one picture.
CURVES_MAX: Final = 10
#: Titles whose peaks are compared to find the highest: those with the most views.
_COMPARED_MAX: Final = 200

Row = Mapping[str, Any]


class AskedConcurrency(AskedWithin, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of the titles' audiences."""

    videos: Annotated[
        str,
        msgspec.Meta(
            description=f"JSON: a list of 1 to {CURVES_MAX} video ids; by default those with the most at once"
        ),
    ] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=CURVES_MAX, description="titles, unless `videos` names them")] = 5


class TitleAudience(msgspec.Struct, frozen=True):
    """One video: its views that were open in the range (`n`), and the most at once within each step.

    `peak` is the most of all, and when that was first.
    """

    video_id: str
    #: As views named it last.
    title: str | None
    n: int
    peak: Audience | None
    views: list[int]


class Concurrency(msgspec.Struct, frozen=True):
    """Finished views that were open at a time, by title: the highest peak first. It ends now, also if the range goes on.

    Each of `at_ms` begins a step of `step_ms`.
    """

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
    """The most at once within each step, of the titles that are listed; and on each row the numbers of all."""
    steps = asked.steps
    video = statements.value_of(asked.rows, asked.rows.by[0])
    condition, parameters = statements.conditions_of(asked.rows)
    within = f"{condition} AND {steps.touches}"
    sql = f"""
        WITH titles AS MATERIALIZED (
            SELECT {video} AS video, count(*) AS n FROM views WHERE {within} GROUP BY video
        ), numbers AS MATERIALIZED (
            SELECT video, n, row_number() OVER (ORDER BY n DESC, video) AS number FROM titles
            ORDER BY n DESC, video LIMIT {_COMPARED_MAX}
        ), spans AS MATERIALIZED (
            SELECT number, began, ended FROM (
                SELECT {video} AS video, {steps.open} FROM views WHERE {within}
            ) AS found JOIN numbers USING (video)
        ), {steps.most_at_once(asked.limit)}, listed AS (
            SELECT number, max(views) AS peak FROM most GROUP BY number ORDER BY peak DESC, number LIMIT {asked.limit:d}
        )
        SELECT video, n, number, peak, step, views, at_ms,
               (SELECT CAST(sum(n) AS bigint) FROM titles), (SELECT count(*) FROM titles)
        FROM listed JOIN numbers USING (number) JOIN most USING (number)
    """  # noqa: S608 - names and numbers of ours
    columns = ("video", "n", "number", "peak", "step", "views", "at_ms", "views_n", "titles_n")
    return Statement(sql, (*parameters, *parameters), columns)


def videos_of(asked: ConcurrencyQuestion, rows: Sequence[Row]) -> list[str]:
    """The titles that are listed: the highest peak first, and then those that are named and have no view."""
    found = {row["video"]: (-row["peak"], row["number"]) for row in rows}
    return [*sorted(found, key=lambda video: found[video]), *(video for video in asked.videos if video not in found)]


def answer(asked: ConcurrencyQuestion, rows: Sequence[Row], names: Sequence[Row], about: About) -> Concurrency:
    """The answer that the rows of `asked_of` and the names make."""
    steps = asked.steps
    named = {row["video"]: row["title"] for row in names}
    by_video: dict[str, list[Row]] = {video: [] for video in videos_of(asked, rows)}
    for row in rows:
        by_video[row["video"]].append(row)
    titles = []
    for video, most in by_video.items():
        views = [one.views for one in steps.curve(most)]
        titles.append(TitleAudience(video, named.get(video), most[0]["n"] if most else 0, steps.peak(most), views))
    views_n, titles_n = (rows[0]["views_n"], rows[0]["titles_n"]) if rows else (0, 0)
    about = msgspec.structs.replace(about, range=span(steps.range))
    return Concurrency(about, views_n, titles_n, steps.step_ms, steps.starts_ms, titles)
