"""Viewers at a time of several titles: what DuckDB answers is what a recount in Python says."""

import asyncio
import json
import random

import pytest
from msgspec import structs

from services.query.core.customers import EVERY_CUSTOMER
from services.query.core.problems import Wrong
from services.query.core.question import parsed
from services.query.core.resources import concurrency, titles
from services.query.core.resources.concurrency import CURVES_MAX, AskedConcurrency, Concurrency
from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.query.listing import NOW_MS
from tests.unit.query.reading import ViewsInMemory
from tests.unit.query.recounting import DAY_MS, HOUR_MS, T0_MS, a_view, counts_at

WITHIN = {"from": str(T0_MS), "to": str(T0_MS + 2 * DAY_MS)}


def answered(engine: Engine, views: list[View], *, now_ms: int = NOW_MS, **given: str) -> Concurrency:
    parameters = parsed(AskedConcurrency, list((WITHIN | given).items()))
    asked = concurrency.understood(parameters, lambda _: EVERY_CUSTOMER, now_ms, days_max=400)
    reader = ViewsInMemory(engine, views)
    (rows,), about = asyncio.run(reader.rows(asked.rows, lambda _: [concurrency.asked_of(asked)]))
    videos = concurrency.videos_of(asked, rows)
    named = asyncio.run(reader.rows(titles.names_question(asked.rows), lambda one: [titles.names_of(one, videos)]))
    return concurrency.answer(asked, rows, named[0][0], about)


@pytest.fixture(scope="module")
def many(views: list[View]) -> list[View]:
    """Views of seven videos, of some that took longer than the step."""
    return [
        structs.replace(view, video_id=f"video {number % 7}", view_start_ms=counts_at(view) - number % 5 * HOUR_MS)
        for number, view in enumerate(views)
    ]


def touching(views: list[View]) -> list[View]:
    """Those that were open at some time of the range."""
    end_ms = T0_MS + 2 * DAY_MS
    read = [view for view in views if not view.deleted and T0_MS <= counts_at(view) < end_ms + DAY_MS]
    return [view for view in read if view.view_start_ms < end_ms and counts_at(view) > max(T0_MS, view.view_start_ms)]


def curve(views: list[View], video: str, at_ms: list[int]) -> list[int]:
    own = [view for view in views if view.video_id == video]
    return [sum(view.view_start_ms <= at < counts_at(view) for view in own) for at in at_ms]


def test_the_titles_with_the_highest_peaks_are_drawn_each_as_a_recount_has_it(engine: Engine, many: list[View]) -> None:
    answer = answered(engine, many, limit="4")

    read = touching(many)
    assert answer.step_ms == HOUR_MS
    assert answer.at_ms == list(range(T0_MS, T0_MS + 2 * DAY_MS, HOUR_MS))
    assert (answer.n, answer.titles_n) == (len(read), 7)
    truth = {video: curve(read, video, answer.at_ms) for video in {view.video_id or "" for view in read}}
    highest = sorted((-max(views), video) for video, views in truth.items())
    assert [-peak for peak, _ in highest[:4]] == [one.peak.views for one in answer.titles if one.peak]
    for one in answer.titles:
        assert one.views == truth[one.video_id]
        assert one.peak is not None
        assert one.peak.at_ms == answer.at_ms[one.views.index(max(one.views))]
        own = [view for view in read if view.video_id == one.video_id]
        assert one.n == len(own)
        # Also one that began after the range, and ended within a day of it.
        named = [
            view
            for view in many
            if view.video_id == one.video_id and view.video_title is not None and not view.deleted
            if T0_MS <= counts_at(view) < T0_MS + 3 * DAY_MS
        ]
        assert one.title == max(named, key=counts_at).video_title


def test_titles_that_are_chosen_are_drawn_also_one_without_a_view(engine: Engine, many: list[View]) -> None:
    answer = answered(engine, many, videos=json.dumps(["nothing", "video 3", "video 3", "video 5"]), limit="1")

    read = touching(many)
    assert {one.video_id for one in answer.titles} == {"video 3", "video 5", "nothing"}
    assert answer.titles[-1].video_id == "nothing"
    assert (answer.titles[-1].n, set(answer.titles[-1].views)) == (0, {0})
    for one in answer.titles:
        assert one.views == curve(read, one.video_id, answer.at_ms)


def test_a_filter_holds_and_views_without_a_video_are_of_no_title(engine: Engine, views: list[View]) -> None:
    answer = answered(engine, views, filter='{"dimension": "country", "in": ["DE"]}')

    read = [view for view in touching(views) if view.country == "DE" and view.video_id is not None]
    assert any(view.video_id is None for view in views)
    assert answer.n == len(read) > 0
    assert {one.video_id for one in answer.titles} == {view.video_id for view in read}


def test_the_curves_end_now(engine: Engine, many: list[View]) -> None:
    answer = answered(engine, many, now_ms=T0_MS + 5 * HOUR_MS + 1)
    assert answer.at_ms[-1] == T0_MS + 5 * HOUR_MS
    assert {len(one.views) for one in answer.titles} == {6}
    future = answered(engine, many, now_ms=T0_MS)
    assert future.at_ms == []
    assert all(one.peak is None and not one.views for one in future.titles)


def shown(view_id: str, video: str, begin: int, *, hours: int = 1) -> View:
    """A view that is open from the `begin`th hour of the range on."""
    at_ms = T0_MS + begin * HOUR_MS
    times = {"view_start_ms": at_ms, "view_end_ms": at_ms + hours * HOUR_MS, "last_append_ms": at_ms + hours * HOUR_MS}
    return a_view(random.Random(view_id), view_id, video_id=video, first_append_ms=at_ms, deleted=False, **times)


def test_a_peak_behind_the_present_puts_no_title_first(engine: Engine) -> None:
    views = [shown("a", "early", 1), *(shown(f"b{number}", "late", 9) for number in range(3))]
    answer = answered(engine, views, now_ms=T0_MS + 5 * HOUR_MS, limit="1")
    assert [one.video_id for one in answer.titles] == ["early"]


def test_the_highest_peak_is_found_among_the_titles_with_the_most_views(engine: Engine) -> None:
    often = [shown(f"{video}-{hour}", f"often {video}", hour) for video in range(15) for hour in (2, 4, 6)]
    at_once = [shown(f"o-{number}", "at once", 3) for number in range(2)]
    rare = [shown(f"r-{video}", f"rare {video:03}", 5) for video in range(210)]

    answer = answered(engine, [*often, *at_once, *rare], limit="2")

    assert (answer.n, answer.titles_n) == (45 + 2 + 210, 15 + 1 + 210)
    assert [(one.video_id, one.peak and one.peak.views) for one in answer.titles] == [("at once", 2), ("often 0", 1)]


def test_of_equal_peaks_the_title_with_more_views_comes_first_and_of_equal_ones_the_smaller_id(engine: Engine) -> None:
    views = [shown("a", "a", 1), shown("b", "b", 1), *(shown(f"c{hour}", "c", hour) for hour in (2, 4))]

    assert [one.video_id for one in answered(engine, views).titles] == ["c", "a", "b"]


def test_a_view_that_was_open_at_no_time_of_the_range_is_not_counted(engine: Engine) -> None:
    views = [shown("before", "film", -1), shown("never", "film", 3, hours=0), shown("back", "film", 5, hours=-1)]

    assert answered(engine, views).n == 0
    assert answered(engine, [*views, shown("open", "film", 0)]).n == 1


def test_an_id_is_that_of_views_also_if_they_have_it_cut_or_empty(engine: Engine) -> None:
    long = "e" * 150
    views = [shown("a", long, 1), shown("b", "", 2)]

    listed = answered(engine, views)
    named = answered(engine, views, videos=json.dumps([long, long[:100], ""]))

    assert {one.video_id for one in listed.titles} == {long[:100], ""}
    assert [(one.video_id, one.n, max(one.views)) for one in named.titles] == [("", 1, 1), (long[:100], 1, 1)]


@pytest.mark.parametrize(
    "text", ["final", "{}", "[]", "[1]", "[null]", json.dumps([str(number) for number in range(CURVES_MAX + 1)])]
)
def test_videos_that_are_no_short_list_are_refused(engine: Engine, text: str) -> None:
    with pytest.raises(Wrong) as raised:
        answered(engine, [], videos=text)
    assert raised.value.faults[0].parameter == "videos"
