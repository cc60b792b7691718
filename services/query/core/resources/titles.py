"""Titles: the videos of a range with their figures, beside those of another range."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from services.query.core.answer import About, Breakdown, Figure, Group
from services.query.core.customers import Admit
from services.query.core.metrics import METRICS
from services.query.core.question import AskedBreakdown, Question, understood
from services.query.core.sql import statements
from services.query.core.sql.statements import TIME_FIELDS, Statement
from shared.measures import COUNTED_MS

TITLES_MAX: Final = 200
#: What every title has, besides what is asked for.
METRICS_OF_TITLES: Final = ("viewers", "views", "watch_ms", "rebuffer_fraction", "startup_ms_p50")
VIDEO: Final = "video_id"

Row = Mapping[str, Any]
OrderBy = Literal["viewers", "views", "watch_ms", "rebuffer_fraction", "startup_ms_p50"]


class AskedTitles(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of the list of titles."""

    customer: Annotated[str, msgspec.Meta(description="a customer, several, or * for all that you may see")] = "*"
    from_: Annotated[str, msgspec.Meta(description="the first moment; by default a day before `to`")] = msgspec.field(
        name="from", default=""
    )
    to: Annotated[str, msgspec.Meta(description="the moment after the last; by default the end of this hour")] = ""
    tz: Annotated[str, msgspec.Meta(description="IANA time zone of times without one")] = "UTC"
    filter: Annotated[str, msgspec.Meta(description="as of any question")] = ""
    compare: Annotated[str, msgspec.Meta(description="`previous`, or the first moment of a range as long")] = ""
    order_by: OrderBy = "viewers"
    order: Literal["descending", "ascending"] = "descending"
    views_min: Annotated[int, msgspec.Meta(ge=0, description="a title with fewer views is in `other`")] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=TITLES_MAX)] = 20


class Title(msgspec.Struct, frozen=True, omit_defaults=True):
    """One video. The names are those that views gave it last."""

    video_id: str
    title: str | None
    series: str | None
    n: int
    metrics: dict[str, Figure]
    compared: dict[str, Figure] | None = None


class TitleList(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first titles; `unknown` are views without a video's id, `other` all other titles together."""

    about: About
    n: int
    titles: list[Title]
    unknown: Group | None = None
    other: Group | None = None
    compared: About | None = None


def question_of(asked: AskedTitles, admit: Admit, now_ms: int, *, days_max: int) -> Question:
    """The breakdown that has the figures; raises `Wrong`, and what `admit` raises."""
    shared = {name: getattr(asked, name) for name in asked.__struct_fields__}
    return understood(
        AskedBreakdown(by=VIDEO, metrics=",".join(METRICS_OF_TITLES), **shared), admit, now_ms, days_max=days_max
    )


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


def answer(found: Breakdown, names: Sequence[Row]) -> TitleList:
    """The list that the breakdown and the names make."""
    by_video = {row["video"]: row for row in names}
    titles = []
    for group in found.groups:
        video = group.key[0]
        if group.kind == "value" and video is not None:
            name = by_video.get(video, {})
            titles.append(Title(video, name.get("title"), name.get("series"), group.n, group.metrics, group.compared))
    apart = {group.kind: group for group in found.groups if group.kind != "value"}
    return TitleList(found.about, found.n, titles, apart.get("unknown"), apart.get("other"), found.compared)


def videos_of(found: Breakdown) -> list[str]:
    """The videos that a breakdown lists."""
    return [key for group in found.groups if group.kind == "value" and (key := group.key[0]) is not None]
