"""Titles: the videos of a range with their figures, beside those of another range."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import msgspec

from services.accounts.core.pages import MEANT
from services.query.core import cursors
from services.query.core.answer import About, Breakdown, Figure, Group
from services.query.core.customers import Admit
from services.query.core.metrics import METRICS
from services.query.core.question import AskedBreakdown, AskedWithin, Compare, Question
from services.query.core.question import understood as understood_question
from services.query.core.sql import statements
from services.query.core.sql.statements import TIME_FIELDS, Statement
from shared.measures import COUNTED_MS

TITLES_MAX: Final = 200
#: What every title has, besides what is asked for.
METRICS_OF_TITLES: Final = ("viewers", "views", "watch_ms", "rebuffer_fraction", "startup_ms_p50")
VIDEO: Final = "video_id"

#: How many titles are on the pages before.
_PLACE: Final = (int,)

Row = Mapping[str, Any]
OrderBy = Literal["viewers", "views", "watch_ms", "rebuffer_fraction", "startup_ms_p50"]


class AskedTitles(AskedWithin, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of the list of titles."""

    compare: Compare = ""
    order_by: OrderBy = "viewers"
    order: Literal["descending", "ascending"] = "descending"
    views_min: Annotated[int, msgspec.Meta(ge=0, description="a title with fewer views is in `other`")] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=TITLES_MAX)] = 20
    cursor: Annotated[str, msgspec.Meta(description=MEANT)] = ""


class Title(msgspec.Struct, frozen=True, omit_defaults=True):
    """One video. The names are those that views gave it last."""

    video_id: str
    title: str | None
    series: str | None
    n: int
    metrics: dict[str, Figure]
    compared: dict[str, Figure] | None = None


class TitleList(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of titles. On the first one `unknown` are views without a video's id, `other` all other titles together."""

    about: About
    n: int
    titles: list[Title]
    unknown: Group | None = None
    other: Group | None = None
    compared: About | None = None
    #: The cursor of the next page; absent on the last one.
    next: str | None = None


@dataclass(frozen=True)
class TitlesQuestion:
    """What is asked, checked."""

    #: The breakdown that has the figures.
    question: Question
    #: Names the list, so that a cursor of another one is refused.
    name: str


def understood(asked: AskedTitles, admit: Admit, now_ms: int, *, days_max: int) -> TitlesQuestion:
    """The question; raises `Wrong`, and what `admit` raises."""
    # What titles are compared with changes neither which there are nor their order.
    name, skipped = cursors.name_of(asked, limit=1, compare=""), 0
    if asked.cursor:
        within, (skipped,) = cursors.opened(asked, name, _PLACE)
        asked = msgspec.structs.replace(asked, **within)
    shared = {field: getattr(asked, field) for field in asked.__struct_fields__ if field != "cursor"}
    breakdown = AskedBreakdown(by=VIDEO, metrics=",".join(METRICS_OF_TITLES), **shared)
    question = understood_question(breakdown, admit, now_ms, days_max=days_max)
    return TitlesQuestion(replace(question, skipped=max(0, skipped)), name)


def names_question(question: Question) -> Question:
    """What the names of titles are read by."""
    return Question(
        shape="rows",
        customers=question.customers,
        metrics=(METRICS["views"],),
        range=question.range,
        filter=question.filter,
        by=question.by,
        fields=("video_title", "video_series", *TIME_FIELDS),
    )


def names_of(question: Question, videos: Sequence[str]) -> Statement:
    """The names that views gave these videos last."""
    condition, parameters = statements.conditions_of(question)
    video = statements.value_of(question, question.by[0])
    sql = f"""
        SELECT video, arg_max(video_title, at_ms), arg_max(video_series, at_ms) FROM (
            SELECT {video} AS video, video_title, video_series, {COUNTED_MS} AS at_ms FROM views WHERE {condition}
        ) AS found WHERE video IN ({", ".join("?" * len(videos)) or "NULL"}) GROUP BY video
    """  # noqa: S608 - names of ours
    return Statement(sql, (*parameters, *videos), ("video", "title", "series"))


def answer(asked: TitlesQuestion, found: Breakdown, names: Sequence[Row]) -> TitleList:
    """The list that the breakdown and the names make.

    Titles that are left out before a page are among `other` in a range that is compared: only the first page has that group.
    """
    by_video = {row["video"]: row for row in names}
    titles = []
    for group in found.groups:
        video = group.key[0]
        if group.kind == "value" and video is not None:
            name = by_video.get(video, {})
            titles.append(Title(video, name.get("title"), name.get("series"), group.n, group.metrics, group.compared))
    question, following = asked.question, None
    apart = {group.kind: group for group in found.groups if group.kind != "value"}
    if len(titles) == question.limit and "other" in apart:
        following = cursors.closed(asked.name, question.range, [question.skipped + question.limit])
    unknown, other = (None, None) if question.skipped else (apart.get("unknown"), apart.get("other"))
    return TitleList(found.about, found.n, titles, unknown, other, found.compared, following)


def videos_of(found: Breakdown) -> list[str]:
    """The videos that a breakdown lists."""
    return [key for group in found.groups if group.kind == "value" and (key := group.key[0]) is not None]
