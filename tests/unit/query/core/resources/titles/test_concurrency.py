"""Viewers at a time of several titles: what DuckDB answers is what a recount in Python says."""

import asyncio
import json
import random

import pytest
from msgspec import structs

from services.query.core.customers import EVERY_CUSTOMER
from services.query.core.problems import Wrong
from services.query.core.question import parsed
from services.query.core.resources.titles import concurrency, titles
from services.query.core.resources.titles.audience import Audience
from services.query.core.resources.titles.concurrency import CURVES_MAX, AskedConcurrency, Concurrency
from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.query.parts.listing import NOW_MS
from tests.unit.query.parts.reading import ViewsInMemory
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS, T0_MS, a_view, began_at, counts_at

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


def touching(views: list[View], length_ms: int = 2 * DAY_MS) -> list[View]:
    """Those that were open at some time of the range."""
    end_ms = T0_MS + length_ms
    read = [view for view in views if not view.deleted and T0_MS <= counts_at(view) < end_ms + DAY_MS]
    return [view for view in read if began_at(view) < end_ms and counts_at(view) > max(T0_MS, began_at(view))]


def at_once(views: list[View], at_ms: int) -> int:
    return sum(began_at(view) <= at_ms < counts_at(view) for view in views)


def curve(views: list[View], video: str, answer: Concurrency) -> list[Audience]:
    """Of each step the most at once, and when that was first: a count changes at beginnings and ends alone."""
    own = [view for view in views if view.video_id == video]
    changes = sorted({at_ms for view in own for at_ms in (began_at(view), counts_at(view))})
    found = []
    for from_ms in answer.at_ms:
        within = [from_ms, *(at_ms for at_ms in changes if from_ms < at_ms < from_ms + answer.step_ms)]
        most = max(at_once(own, at_ms) for at_ms in within)
        found.append(Audience(next(at_ms for at_ms in within if at_once(own, at_ms) == most), most))
    return found


def peak(steps: list[Audience]) -> Audience:
    return max(steps, key=lambda one: one.views)


def test_the_titles_with_the_highest_peaks_are_drawn_each_as_a_recount_has_it(engine: Engine, many: list[View]) -> None:
    answer = answered(engine, many, limit="4")

    read = touching(many)
    assert answer.step_ms == HOUR_MS
    assert answer.at_ms == list(range(T0_MS, T0_MS + 2 * DAY_MS, HOUR_MS))
    assert (answer.n, answer.titles_n) == (len(read), 7)
    truth = {video: curve(read, video, answer) for video in {view.video_id or "" for view in read}}
    highest = sorted((peak(steps).views for steps in truth.values()), reverse=True)
    assert highest[:4] == [one.peak.views for one in answer.titles if one.peak]
    for one in answer.titles:
        assert one.views == [step.views for step in truth[one.video_id]]
        assert one.peak == peak(truth[one.video_id])
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
        assert one.views == [step.views for step in curve(read, one.video_id, answer)]


@pytest.mark.parametrize("hours", [2, 10, 30, 20 * 24])
def test_short_views_between_two_steps_are_in_the_most_at_once(engine: Engine, hours: int) -> None:
    chance, length_ms = random.Random(hours), hours * HOUR_MS
    # Most come in the evening, and stay for less than a step; some come and go in the same ms.
    begins = [round(length_ms * chance.triangular(-0.1, 1.1, 0.7)) for _ in range(400)]
    views = [
        spanning(
            f"{number}", f"video {number % 3}", begin, chance.choice([1, 1_000, length_ms // 300, length_ms // 20])
        )
        for number, begin in enumerate(begins)
    ]

    answer = answered(engine, views, now_ms=T0_MS + 2 * length_ms, to=str(T0_MS + length_ms))

    assert len(answer.titles) == 3
    for one in answer.titles:
        truth = curve(touching(views, length_ms), one.video_id, answer)
        assert one.views == [step.views for step in truth]
        assert one.peak == peak(truth)
        # Samples at the steps' beginnings would say less.
        own = [view for view in views if view.video_id == one.video_id]
        assert sum(one.views) > sum(at_once(own, at_ms) for at_ms in answer.at_ms)


def test_a_view_that_ends_as_another_begins_is_not_open_beside_it(engine: Engine) -> None:
    minute = HOUR_MS // 60
    views = [spanning(f"{at}", "film", at * minute, minute) for at in range(50, 130)]
    # Open over the beginning of a step, and ended within it: carried there. One that ends as the step begins is not.
    views += [spanning("over", "news", 3 * HOUR_MS - minute, 2 * minute), spanning("to", "news", 4 * HOUR_MS, HOUR_MS)]

    by_video = {one.video_id: one for one in answered(engine, views).titles}

    assert by_video["film"].views[:4] == [1, 1, 1, 0]
    assert by_video["news"].views[:7] == [0, 0, 1, 1, 1, 0, 0]
    assert by_video["news"].peak == Audience(T0_MS + 3 * HOUR_MS - minute, 1)


def test_a_view_whose_clock_began_long_ago_is_open_from_a_day_before_its_first_beacon_on(engine: Engine) -> None:
    late = structs.replace(shown("tv", "film", 30), view_start_ms=1)

    (film,) = answered(engine, [late]).titles

    assert film.views == [0] * 6 + [1] * 25 + [0] * 17
    assert film.peak == Audience(T0_MS + 6 * HOUR_MS, 1)


def test_titles_are_put_in_order_by_what_was_at_once_between_the_steps(engine: Engine) -> None:
    steady = [shown(f"s{number}", "steady", 0, hours=40) for number in range(2)]
    burst = [spanning(f"b{number}", "burst", HOUR_MS + 1_000 + number, 1_000) for number in range(5)]

    answer = answered(engine, [*steady, *burst], limit="1")

    assert [(one.video_id, one.peak) for one in answer.titles] == [("burst", Audience(T0_MS + HOUR_MS + 1_004, 5))]


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
    return spanning(view_id, video, begin * HOUR_MS, hours * HOUR_MS)


def spanning(view_id: str, video: str, begin_ms: int, length_ms: int) -> View:
    """A view that is open for so long from a moment of the range on."""
    at_ms = T0_MS + begin_ms
    times = {"view_start_ms": at_ms, "view_end_ms": at_ms + length_ms, "last_append_ms": at_ms + length_ms}
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
