"""Searches and titles over generated views: what DuckDB answers is what a recount in Python says."""

import asyncio
import base64
import json
from typing import Any

import pytest
from msgspec import structs

from services.query.core import filters
from services.query.core.answer import Breakdown
from services.query.core.customers import EVERY_CUSTOMER
from services.query.core.problems import Wrong
from services.query.core.question import parsed
from services.query.core.resources import search
from services.query.core.resources.search import AskedViews, ViewList
from services.query.core.resources.titles import title, titles
from services.query.core.resources.titles.title import AskedTitle
from services.query.core.resources.titles.titles import AskedTitles, TitleList
from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.query.parts.listing import NOW_MS, WITHIN, counted, list_of_errors, viewer
from tests.unit.query.parts.reading import ViewsInMemory
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS, T0_MS, began_at, counts_at


def found(engine: Engine, views: list[View], **given: str) -> ViewList:
    asked = understood(**given)
    reading = ViewsInMemory(engine, views)
    rows, about = asyncio.run(reading.first_rows(asked.question, search.in_parts(asked), asked.limit + 1))
    return search.page(asked, rows, about)


def understood(**given: str) -> search.Search:
    asked = parsed(AskedViews, list((WITHIN | given).items()))
    return search.understood(asked, lambda _: EVERY_CUSTOMER, NOW_MS, days_max=400)


@pytest.mark.parametrize("order_by", ["time", "startup_ms", "rebuffer_ms", "score_view"])
@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_pages_hold_every_view_once_and_in_order(engine: Engine, views: list[View], order_by: str, order: str) -> None:
    given = {"order_by": order_by, "order": order, "limit": "17", "columns": "startup_ms,rebuffer_ms,score_view"}
    pages = [found(engine, views, **given)]
    while (following := pages[-1].next) is not None:
        pages.append(found(engine, views, **given, cursor=following))
    rows = [view for page in pages for view in page.views]

    def place(view: View) -> tuple[Any, ...]:
        value = counts_at(view) if order_by == "time" else getattr(view, order_by)
        sign = 1 if order == "ascending" else -1
        return (value is None, sign * (value or 0), -counts_at(view), view.customer_id, view.view_id)

    expected = sorted(counted(views), key=place)
    assert [row["view_id"] for row in rows] == [view.view_id for view in expected]
    assert all(len(page.views) == 17 for page in pages[:-1])


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_a_page_by_time_is_of_the_day_where_it_begins_if_that_has_enough(
    engine: Engine, views: list[View], order: str
) -> None:
    asked = understood(order=order, limit="5")
    first, *later = search.in_parts(asked)
    reading = ViewsInMemory(engine, views)
    rows, _ = asyncio.run(reading.first_rows(asked.question, [first], 6))

    whole = search.page(asked, *asyncio.run(reading.first_rows(asked.question, [search.statement(asked)], 6)))
    hours = {int(row["counted_ms"]) // HOUR_MS for row in rows}
    day = range(asked.question.range.first_hour, asked.question.range.first_hour + 24)
    if order == "descending":
        day = range(asked.question.range.end_hour - 24, asked.question.range.end_hour)
    assert hours <= set(day)
    assert later
    assert asyncio.run(reading.first_rows(asked.question, [first, *later], 6))[0][: len(rows)] == rows
    assert search.page(asked, *asyncio.run(reading.first_rows(asked.question, [first, *later], 6))) == whole


def test_a_page_by_another_number_is_of_the_whole_range() -> None:
    assert len(search.in_parts(understood(order_by="startup_ms"))) == 1


def test_a_search_finds_by_viewer_title_error_score_and_any_filter(engine: Engine, views: list[View]) -> None:
    def ids(**given: str) -> set[str]:
        return {row["view_id"] for row in found(engine, views, limit="1000", **given).views}

    kept = counted(views)
    assert ids(viewer="user") == {view.view_id for view in kept if viewer(view) == "user"} != set()
    assert ids(title="final") == {view.view_id for view in kept if view.video_title == "The Final"} != set()
    assert ids(error="net") == {view.view_id for view in kept if view.error_code == "net"} != set()
    low = {view.view_id for view in kept if view.score_view is not None and view.score_view < 40}
    assert ids(score_below="40") == low != set()
    slow = '{"not": {"number": "startup_ms", "at_least": 1000}}'
    assert ids(filter=slow) == {view.view_id for view in kept if not (view.startup_ms or 0) >= 1000} != set()


def test_columns_are_fields_and_dimensions_and_custom_ones(engine: Engine, views: list[View]) -> None:
    page = found(engine, views, columns="is_bot,viewer,custom.plan,exit_before_start", limit="1000")

    by_id = {view.view_id: view for view in views}
    assert page.columns == [*search.NAMED_BY, "is_bot", "viewer", "custom.plan", "exit_before_start"]
    for row in page.views:
        view = by_id[row["view_id"]]
        assert (row["is_bot"], row["custom.plan"]) == (view.is_bot, view.custom.get("plan"))
        assert (row["viewer"], row["exit_before_start"]) == (viewer(view), str(view.ebvs).lower())
        assert row["counted_ms"] == counts_at(view)


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"columns": "nothing"}, "columns"),
        ({"columns": "events"}, "columns"),
        ({"order_by": "country"}, "order_by"),
        ({"cursor": "xxxx"}, "cursor"),
        ({"cursor": "WzFd"}, "cursor"),
        ({"limit": "1001"}, "limit"),
        ({"filter": '{"number": "country", "below": 1}'}, "filter"),
        ({"filter": '{"number": "startup_ms"}'}, "filter"),
        ({"filter": '{"dimension": "country", "in": ["DE"], "contains": "D"}'}, "filter"),
    ],
)
def test_a_wrong_search_names_the_parameter(
    engine: Engine, views: list[View], given: dict[str, str], parameter: str
) -> None:
    with pytest.raises(Wrong) as wrong:
        found(engine, views, **given)
    assert wrong.value.faults[0].parameter == parameter


def test_a_cursor_belongs_to_its_search_and_keeps_the_range(engine: Engine, views: list[View]) -> None:
    cursor = found(engine, views, limit="2").next
    assert cursor is not None
    with pytest.raises(Wrong):
        found(engine, views, limit="2", cursor=cursor, error="net")
    # The columns and the number of views may change on the way.
    assert len(found(engine, views, limit="3", columns="country", cursor=cursor).views) == 3
    # The cursor has the range: it may be left out, and a range up to now that has moved on since is another one.
    second = found(engine, views, limit="3", cursor=cursor).views
    assert found(engine, views, limit="3", cursor=cursor, **{"from": "", "to": ""}).views == second
    for other in ({"from": str(int(WITHIN["from"]) + 60_000)}, {"to": str(int(WITHIN["to"]) + 60_000)}):
        with pytest.raises(Wrong) as raised:
            found(engine, views, limit="3", cursor=cursor, **other)
        assert raised.value.faults[0].parameter == "cursor"


def test_a_page_of_titles_may_be_compared_with_another_range(engine: Engine, views: list[View]) -> None:
    many = [structs.replace(view, video_id=f"video {number % 7}") for number, view in enumerate(views)]
    first = list_of_titles(engine, many, limit="3", compare="previous")
    assert first.next is not None
    behind = list_of_titles(engine, many, limit="3", cursor=first.next, compare=str(T0_MS - 30 * DAY_MS))
    assert [one.video_id for one in behind.titles] == [
        one.video_id for one in list_of_titles(engine, many, limit="3", cursor=first.next).titles
    ]


@pytest.mark.parametrize("place", [3, 6])
def test_a_cursor_of_numbers_that_no_page_has_is_no_cursor(engine: Engine, views: list[View], place: int) -> None:
    cursor = found(engine, views, limit="2").next
    assert cursor is not None
    name, _, held = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(" ")
    values = json.loads(held)
    values[place] = 10**17
    forged = base64.urlsafe_b64encode(f"{name} {json.dumps(values)}".encode()).decode().rstrip("=")
    with pytest.raises(Wrong) as raised:
        found(engine, views, limit="2", cursor=forged)
    assert raised.value.faults[0].parameter == "cursor"


def test_a_page_goes_on_behind_a_number_that_is_larger_than_any_time(engine: Engine, views: list[View]) -> None:
    large = [structs.replace(one, bitrate_integral=10**16 + number) for number, one in enumerate(views)]
    cursor = found(engine, large, limit="2", order_by="bitrate_integral").next
    assert cursor is not None
    behind = found(engine, large, limit="2", order_by="bitrate_integral", cursor=cursor)
    assert len(behind.views) == 2


def list_of_titles(engine: Engine, views: list[View], **given: str) -> TitleList:
    reader = ViewsInMemory(engine, views)
    asked = titles.understood(
        parsed(AskedTitles, list((WITHIN | given).items())), lambda _: EVERY_CUSTOMER, NOW_MS, days_max=400
    )
    breakdown = asyncio.run(reader.answer(asked.question))
    assert isinstance(breakdown, Breakdown)
    (names,), _ = asyncio.run(
        reader.rows(
            titles.names_question(asked.question), lambda one: [titles.names_of(one, titles.videos_of(breakdown))]
        )
    )
    return titles.answer(asked, breakdown, names)


def test_titles_have_their_figures_and_their_last_name(engine: Engine, views: list[View]) -> None:
    answer = list_of_titles(engine, views)

    kept = counted(views)
    assert {one.video_id: one.n for one in answer.titles} == {
        video: sum(view.video_id == video for view in kept) for video in ("final", "news")
    }
    assert answer.next is None
    assert answer.unknown is not None
    assert answer.unknown.n == sum(view.video_id is None for view in kept)
    for one in answer.titles:
        named = [view for view in kept if view.video_id == one.video_id and view.video_title is not None]
        assert one.title == max(named, key=counts_at).video_title


@pytest.mark.parametrize("given", [{}, {"order_by": "views", "order": "ascending"}, {"compare": str(T0_MS)}])
def test_pages_of_titles_are_the_whole_list_in_its_order(
    engine: Engine, views: list[View], given: dict[str, str]
) -> None:
    many = [structs.replace(view, video_id=f"video {number % 7}") for number, view in enumerate(views)]
    whole = list_of_titles(engine, many, **given)
    pages = [list_of_titles(engine, many, limit="3", **given)]
    while (cursor := pages[-1].next) is not None:
        pages.append(list_of_titles(engine, many, limit="3", cursor=cursor, **given))

    assert [len(page.titles) for page in pages] == [3, 3, 1]
    assert [one for page in pages for one in page.titles] == whole.titles
    assert {page.n for page in pages} == {whole.n}
    first, *later = pages
    assert first.other is not None
    assert first.other.n == sum(one.n for page in later for one in page.titles)
    assert all(page.other is page.unknown is None for page in later)


def test_a_cursor_of_another_list_is_refused(engine: Engine, views: list[View]) -> None:
    cursor = list_of_errors(engine, views, limit="1").next
    assert cursor is not None
    for ask in (
        lambda: list_of_errors(engine, views, cursor=cursor, filter='{"dimension": "country", "in": ["DE"]}'),
        lambda: list_of_titles(engine, views, cursor=cursor),
        lambda: found(engine, views, cursor=cursor),
        lambda: list_of_errors(engine, views, cursor="*"),
    ):
        with pytest.raises(Wrong) as wrong:
            ask()
        assert wrong.value.faults[0].parameter == "cursor"


def test_a_title_has_the_curve_and_the_parts_that_were_watched(engine: Engine, views: list[View]) -> None:
    within = {"from": str(T0_MS), "to": str(T0_MS + 2 * DAY_MS)}
    asked = title.understood_title(
        "final", parsed(AskedTitle, list(within.items())), lambda _: EVERY_CUSTOMER, NOW_MS, days_max=400
    )
    rows, _ = asyncio.run(ViewsInMemory(engine, views).rows(asked.rows, lambda _: title.asked_of(asked)))
    (named,), most, ranges, reached = rows

    own = [view for view in views if view.video_id == "final" and not view.deleted]
    read = [view for view in own if T0_MS <= counts_at(view) < T0_MS + 3 * DAY_MS]
    begins = sorted({began_at(view) for view in read})
    for point in asked.steps.curve(most):
        moments = [point.at_ms, *(at for at in begins if point.at_ms < at < point.at_ms + HOUR_MS)]
        assert point.views == max(sum(began_at(one) <= at < counts_at(one) for one in read) for at in moments)
    assert asked.steps.step_ms == HOUR_MS

    ended = [view for view in own if T0_MS <= counts_at(view) < T0_MS + 2 * DAY_MS]
    assert named["n"] == len(ended)
    parts = title.retention(600_000, named["n"], ranges, reached).parts
    assert len(parts) == title.PARTS
    for part in parts:
        spans = [
            [one for one in view.playback_ranges if one[0] < part.to_ms and one[1] > part.from_ms] for view in ended
        ]
        assert part.views == sum(bool(one) for one in spans)
        assert part.plays == sum(map(len, spans))
        came = [view for view in ended if view.max_playhead_ms > 0 and view.max_playhead_ms >= part.from_ms]
        assert part.reached == len(came)


@pytest.mark.parametrize(
    ("now_ms", "last_ms"),
    [(T0_MS + 5 * HOUR_MS + 1, T0_MS + 5 * HOUR_MS), (T0_MS + 5 * HOUR_MS, T0_MS + 4 * HOUR_MS), (T0_MS, None)],
)
def test_a_curve_ends_now_also_where_its_range_goes_on(now_ms: int, last_ms: int | None) -> None:
    given = parsed(AskedTitle, [("from", str(T0_MS)), ("to", str(T0_MS + 2 * DAY_MS))])
    asked = title.understood_title("final", given, lambda _: EVERY_CUSTOMER, now_ms, days_max=400)
    curve = asked.steps.curve([{"step": 0, "views": 3, "at_ms": 7}])
    assert asked.steps.step_ms == HOUR_MS
    assert [point.views for point in curve] == [3, 0, 0, 0, 0, 0][: len(curve)]
    assert (curve[-1].at_ms if curve else None) == last_ms


def test_ranges_that_are_none_are_passed_over() -> None:
    wrong = [[5, 5], [9, 3], [-1, 5], [7], [600_000, 700_000]]
    found = title.retention(600_000, 1, [{"number": 1, "ranges": wrong}], [])
    assert all(part.plays == part.views == 0 for part in found.parts)
    # A live player's positions are the time of day: no place in a video.
    assert title.retention(1_700_000_000_000, 1, [], []).parts == []


def test_the_viewers_that_a_filter_names_are_known() -> None:
    one = filters.parsed(
        '{"or": [{"dimension": "viewer", "in": ["a", null]}, {"not": {"dimension": "viewer", "in": ["b"]}}]}'
    )
    assert filters.named_of(one, "viewer") == ("a", "b")


def test_a_part_of_a_viewers_id_names_viewers_and_an_id_is_as_the_dimension_has_it() -> None:
    part = '{"not": {"dimension": "viewer", "contains": "ann"}}'
    whole = f'{{"dimension": "viewer", "in": ["{"v" * 200}", "{"v" * 201}"]}}'
    other = '{"dimension": "country", "contains": "d"}'
    one = filters.parsed(f'{{"and": [{part}, {whole}, {other}, {part}]}}')
    assert filters.named_of(one, "viewer") == ("contains: ann", "v" * 100)


def test_a_search_counts_the_played_ranges_of_a_view(engine: Engine, views: list[View]) -> None:
    played = [structs.replace(view, playback_ranges=[[0, 5]] * (number % 3)) for number, view in enumerate(views)]
    rows = found(engine, played, columns="playback_ranges_count", limit="1000").views
    wanted = {(view.customer_id, view.view_id, view.day): len(view.playback_ranges) or None for view in counted(played)}
    assert {(one["customer_id"], one["view_id"], one["day"]): one["playback_ranges_count"] for one in rows} == wanted
    assert set(wanted.values()) == {None, 1, 2}
