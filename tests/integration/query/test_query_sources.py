"""The same question by different ways: sums of hot rows, hot rows, the warehouse, and both with a seam between them."""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from msgspec.structs import replace as replaced

from deploy.local.postgres import Postgres as Server
from services.finalizer.serving.published import Slice
from services.query.core.answer import Answer, Breakdown, Figure, Overall, Timeseries
from services.query.core.calendar import Range
from services.query.core.customers import EVERY_CUSTOMER
from services.query.core.filters import Filter
from services.query.core.question import Asked, AskedBreakdown, AskedSeries, parsed
from services.query.core.resources.errors import answer as errors_answer
from services.query.core.resources.errors import errors
from services.query.core.resources.errors.errors import AskedErrors, ErrorList
from services.query.core.sql import sums
from shared.schemas.view import View
from tests.integration.query.querying import Installation, installed
from tests.unit.query.parts import asking, recounting
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS, T0_MS, a_view, counts_at

pytestmark = pytest.mark.integration


@pytest.fixture
def installation(postgres: Server, tmp_path: Path) -> Iterator[Installation]:
    with installed(postgres, tmp_path) as made:
        yield made


def expect_truth(
    installation: Installation, views: list[View], seed: int, questions: int, *, has_sums: bool = False
) -> None:
    """Any questions are answered as a recount of these views says, by every way that there is."""

    async def ask() -> None:
        chance = random.Random(seed)
        async with installation.answering() as answering:
            for _ in range(questions):
                one = asking.question(asking.asked(chance))
                answer = await answering.answer(one, way="views")
                asking.expect(one, answer, views)
                # Quantiles of durations come from buckets, those of scores do not.
                assert answer.about.is_exact == (one.field is None or one.field.startswith("score_"))
                if has_sums and sums.suffice(one):
                    asking.expect(one, await answering.answer(one, way="sums"), views)

    asyncio.run(ask())


def expect_truth_from_memory(installation: Installation, views: list[View], seed: int, questions: int) -> int:
    """The same of questions that are answered from columns in memory where they can be; how many were."""
    answered = 0

    async def ask() -> None:
        nonlocal answered
        chance = random.Random(seed)
        async with installation.remembering() as (answering, memory):
            loaded = memory.loaded

            async def counting(*given: Any) -> Any:
                nonlocal answered
                found = await loaded(*given)
                answered += found is not None
                return found

            memory.loaded = counting  # type: ignore[method-assign]
            for _ in range(questions):
                one = asking.question(asking.asked(chance))
                asking.expect(one, await answering.answer(one, way="views"), views)
                await memory.read_all()
                asking.expect(one, await answering.answer(one, way="views"), views)

    asyncio.run(ask())
    return answered


def test_columns_in_memory_say_what_files_say_whatever_counts_elsewhere(installation: Installation) -> None:
    chance = random.Random(21)
    views = [a_view(chance, f"view-{number}") for number in range(600)]
    installation.in_warehouse(views[:400])
    installation.in_postgres(views)
    installation.settle(before_hour=T0_MS // HOUR_MS + 30)
    # Slices that Postgres owns are read from there, and files with such slices as they are.
    expect_truth_from_memory(
        installation, views[:400] + owned(views[400:], T0_MS // HOUR_MS + 30), seed=1, questions=30
    )

    installation.in_warehouse(views[400:])
    installation.settle()
    assert expect_truth_from_memory(installation, views, seed=2, questions=60) > 40

    # Rows that were deleted from a file, and files that came since, are read beside what is kept.
    installation.out_of_warehouse(views[:50])
    later = [a_view(chance, f"later-{number}") for number in range(60)]
    installation.in_warehouse(later)
    assert expect_truth_from_memory(installation, [*views[50:], *later], seed=3, questions=60) > 20


def test_a_bound_of_any_number_holds_in_memory_and_in_files(installation: Installation) -> None:
    views = [a_view(random.Random(number), f"view-{number}") for number in range(300)]
    installation.in_warehouse(views)
    installation.in_postgres(views)
    installation.settle()

    async def ask() -> None:
        async with installation.remembering() as (answering, memory):
            for number in asking.NUMBERS:
                known = sorted(recounting.known(views, number))
                of = Filter(none_of=Filter(number=number, at_least=known[len(known) // 3], below=known[-9]))
                text = msgspec.json.encode(of).decode()
                within = {"from_": str(T0_MS - DAY_MS), "to": str(T0_MS + 6 * DAY_MS)}
                one = asking.question(Asked(metrics="views", filter=text, **within))
                for _ in range(2):
                    found = await answering.answer(one, way="views")
                    asking.expect(one, found, views)
                    assert 0 < found.n < len(views)
                    # The second time from memory, but for the day, which files have in their names alone.
                    await memory.read_all()

    asyncio.run(ask())


def owned(views: list[View], since_hour: int) -> list[View]:
    return [view for view in views if counts_at(view) // HOUR_MS >= since_hour]


def test_hot_rows_sums_and_the_warehouse_say_the_same(installation: Installation) -> None:
    chance = random.Random(1)
    views = [a_view(chance, f"view-{number}") for number in range(400)]
    installation.in_warehouse([])
    installation.in_postgres(views)
    # All slices are hot: the warehouse is empty.
    expect_truth(installation, views, seed=1, questions=60, has_sums=True)

    installation.in_warehouse(views)
    # The warehouse has them too, and each counts once.
    expect_truth(installation, views, seed=2, questions=60, has_sums=True)

    installation.settle(before_hour=T0_MS // HOUR_MS + 40)
    expect_truth(installation, views, seed=3, questions=60)

    installation.settle()
    with psycopg.connect(installation.dsn, autocommit=True) as connection:
        connection.execute("DELETE FROM serving.views")
        connection.execute("DELETE FROM serving.hot_slices")
    expect_truth(installation, views, seed=4, questions=60)


def test_a_view_that_moved_out_of_the_warehouses_hours_counts_once(installation: Installation) -> None:
    """Hot rows are kept from an hour on. A revision takes a view from before it to after it, and one the other way."""
    chance = random.Random(11)
    cut = T0_MS // HOUR_MS + 30
    former = [a_view(chance, f"view-{number}") for number in range(300)]
    revised = [a_view(chance, view.view_id, revision=2, deleted=False) for view in former[:150]]
    pairs = list(zip(former, revised, strict=False))
    assert any(is_before(old, cut) and not is_before(new, cut) for old, new in pairs)
    assert any(is_before(new, cut) and not is_before(old, cut) for old, new in pairs)
    # The warehouse has not merged the revisions yet; Postgres has them.
    installation.in_warehouse(former)
    installation.in_postgres(former)
    installation.settle()
    installation.keep_from(cut)
    installation.in_postgres(revised)

    # A revision that stays before that hour waits for the finalizer: Postgres has no row of it.
    newest = [old if is_before(old, cut) and is_before(new, cut) else new for old, new in pairs]
    expect_truth(installation, [*newest, *former[150:]], seed=11, questions=60)


def is_before(view: View, hour: int) -> bool:
    return counts_at(view) // HOUR_MS < hour


def test_dirty_hours_are_answered_by_hot_rows_and_others_by_the_warehouse(installation: Installation) -> None:
    chance = random.Random(13)
    former = [a_view(chance, f"view-{number}") for number in range(200)]
    installation.in_warehouse(former)
    installation.in_postgres(former)
    installation.settle()
    # The finalizer has marked what a batch changes and has merged it; the other reader of the topic is behind.
    revised = [a_view(chance, view.view_id, revision=2) for view in former[:50]]
    slices = {(counts_at(view) // HOUR_MS, view.customer_id) for view in (*former[:50], *revised)}
    installation.serving.mark_dirty({Slice(hour, customer_id) for hour, customer_id in slices})
    installation.out_of_warehouse(former[:50])
    installation.in_warehouse(revised)

    expect_truth(installation, former, seed=13, questions=40)


def test_a_question_that_begins_before_sums_are_kept_is_answered_from_views(installation: Installation) -> None:
    chance = random.Random(8)
    views = [a_view(chance, f"view-{number}") for number in range(60)]
    installation.in_warehouse(views)
    installation.in_postgres(views)
    # Of these hours the rollups are read, and there are none.
    installation.settle()
    kept_ms = T0_MS + DAY_MS
    whole, later = (str(from_ms) for from_ms in (T0_MS - DAY_MS, kept_ms))

    async def ask() -> None:
        async with installation.answering() as answering:

            async def sources(customer: str, from_: str) -> set[str]:
                one = asking.question(
                    Asked(customer=customer, metrics="views", from_=from_, to=str(T0_MS + 6 * DAY_MS))
                )
                found = await answering.answer(one)
                names = {source.name for source in found.about.sources}
                if "sums" not in names:
                    asking.expect(one, found, views)
                return names

            views_of = {"warehouse", "hot_rows"}
            assert await sources("acme", whole) == {"sums"}
            installation.serving.expire_customer("acme", views_before_day=0, rollups_before_ms=kept_ms)
            assert await sources("acme", whole) == await sources("acme,other", whole) == views_of
            assert (
                await sources("acme", later) == await sources("other", whole) == await sources("*", whole) == {"sums"}
            )
            installation.serving.expire(rollups_before_ms=kept_ms, views_since_hour=0)
            assert await sources("other", whole) == await sources("*", whole) == views_of
            # Sums that are gone do not come back with days that are longer now.
            installation.serving.expire(rollups_before_ms=kept_ms - DAY_MS, views_since_hour=0)
            assert await sources("*", str(kept_ms - HOUR_MS)) == views_of
            assert await sources("*", later) == {"sums"}

    asyncio.run(ask())


def test_with_too_many_hot_rows_the_warehouse_answers_and_says_so(installation: Installation) -> None:
    chance = random.Random(14)
    views = [a_view(chance, f"view-{number}", deleted=False) for number in range(50)]
    installation.in_warehouse(views[:20])
    installation.in_postgres(views)

    async def ask(rows_max: int) -> tuple[int, bool]:
        async with installation.answering(rows_max) as answering:
            answer = await answering.answer(asking.question(everything()), way="views")
            assert isinstance(answer, Overall)
            return answer.n, answer.about.has_hot_rows

    assert asyncio.run(ask(rows_max=50)) == (50, True)
    assert asyncio.run(ask(rows_max=49)) == (20, False)


def test_an_answer_is_kept_until_its_views_change(installation: Installation) -> None:
    chance = random.Random(15)
    views = [a_view(chance, f"view-{number}", deleted=False) for number in range(30)]
    installation.in_warehouse(views[:10])
    installation.in_postgres(views[:10])
    installation.settle()

    async def ask() -> None:
        async with installation.answering() as answering:
            one = asking.question(everything())
            first = await answering.answer(one, way="views")
            again = await answering.answer(one, way="views")
            assert count(again) == 10
            installation.in_postgres(views[10:20])
            second = await answering.answer(one, way="views")
            assert (count(first), count(second)) == (10, 20)
            installation.in_warehouse(views[10:20])
            installation.settle()
            assert count(await answering.answer(one, way="views")) == 20

    asyncio.run(ask())


def test_a_comparison_has_the_same_groups_in_the_other_range(installation: Installation) -> None:
    chance = random.Random(16)
    views = [a_view(chance, f"view-{number}") for number in range(300)]
    installation.in_warehouse(views)
    installation.in_postgres(views)
    middle_ms = T0_MS + 2 * DAY_MS
    asked = AskedBreakdown(
        by="cdn,player_version",
        metrics="views,startup_ms_p95",
        limit=3,
        from_=str(middle_ms),
        to=str(middle_ms + 2 * DAY_MS),
        compare="previous",
    )

    async def ask() -> Breakdown:
        async with installation.answering() as answering:
            found = await answering.answer(asking.question(asked))
            assert isinstance(found, Breakdown)
            return found

    found = asyncio.run(ask())
    before = replace(asking.question(asked), range=Range(middle_ms - 2 * DAY_MS, middle_ms), compare=None)
    wanted = recounting.wanted(before, views)
    for group in found.groups:
        assert group.compared is not None
        if group.kind == "value":
            of_group = [view for view in wanted if [view.cdn, view.player_version] == group.key]
            assert group.compared["views"].value == len(of_group)
            assert group.compared["startup_ms_p95"].value == recounting.figures(before, of_group)["startup_ms_p95"]
    assert sum(int((group.compared or {})["views"].value or 0) for group in found.groups) == len(wanted)


@pytest.mark.parametrize("settled_hours", [0, 30, 200])
def test_errors_are_compared_with_a_range_far_away_from_hot_rows_and_files(
    installation: Installation, settled_hours: int
) -> None:
    chance = random.Random(18)
    views = [
        replaced(a_view(chance, f"view-{number}"), error_code=chance.choice([None, "a", "b"])) for number in range(400)
    ]
    installation.in_warehouse(views)
    installation.in_postgres(views)
    installation.settle(before_hour=T0_MS // HOUR_MS + settled_hours)
    from_ms = T0_MS + 2 * DAY_MS
    given = [("from", str(from_ms)), ("to", str(from_ms + DAY_MS)), ("compare", str(T0_MS)), ("order_by", "change")]
    asked = errors.understood(parsed(AskedErrors, given), lambda _: EVERY_CUSTOMER, from_ms, days_max=400)
    assert asked.question.unread == Range(T0_MS + DAY_MS, from_ms)

    async def ask() -> ErrorList:
        async with installation.answering() as answering:
            rows, about = await answering.rows(asked.question, lambda _: errors.asked_of(asked, []))
            return errors_answer.answer(asked, rows, about)

    found = asyncio.run(ask())
    after, before = (
        [view for view in views if not view.deleted and begin <= counts_at(view) < begin + DAY_MS]
        for begin in (from_ms, T0_MS)
    )
    assert found.n == len(after) > 0
    for one in found.errors:
        own = sum(view.error_code == one.code for view in before)
        assert one.views == sum(view.error_code == one.code for view in after)
        assert one.before == Figure(own / len(before), len(before))
    assert {one.code for one in found.errors} == {"a", "b"}


def test_a_series_is_compared_line_by_line(installation: Installation) -> None:
    chance = random.Random(17)
    views = [a_view(chance, f"view-{number}") for number in range(300)]
    installation.in_warehouse(views)
    installation.in_postgres(views)
    middle_ms = T0_MS + 2 * DAY_MS
    asked = AskedSeries(
        by="cdn",
        metrics="views,experience_score",
        limit=1,
        bucket="day",
        from_=str(middle_ms),
        to=str(middle_ms + DAY_MS),
        compare=str(T0_MS),
    )

    async def ask() -> Timeseries:
        async with installation.answering() as answering:
            found = await answering.answer(asking.question(asked))
            assert isinstance(found, Timeseries)
            return found

    found = asyncio.run(ask())
    assert found.compared is not None
    lines = [(line.kind, line.key) for line in found.groups or ()]
    assert [(line.kind, line.key) for line in found.compared.groups or ()] == lines
    wanted = recounting.wanted(replace(asking.question(asked), range=Range(T0_MS, T0_MS + DAY_MS)), views)
    assert sum(line.n for line in found.compared.groups or ()) == len(wanted)
    assert found.compared.groups is not None
    assert found.compared.groups[0].n == sum(view.cdn == lines[0][1][0] for view in wanted)


def everything() -> Asked:
    """All views of all customers, in a range that no sums answer."""
    return Asked(from_=str(T0_MS - 2 * DAY_MS + 1), to=str(T0_MS + 6 * DAY_MS))


def count(answer: Answer) -> int:
    assert isinstance(answer, Overall)
    return answer.n
