"""Errors over generated views: what DuckDB answers is what a recount in Python says."""

import json
import random
from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from services.query.answering import TooManyRows
from services.query.core.answer import Figure, Span
from services.query.core.calendar import HOUR_MS, Range
from services.query.core.customers import EVERY_CUSTOMER
from services.query.core.problems import Wrong
from services.query.core.question import Question, parsed
from services.query.core.resources.errors import errors
from services.query.core.resources.errors.errors import AskedErrors
from services.query.core.resources.errors.seen import LOOK_BACK_DAYS
from services.query.listing import Lists
from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.query.parts.listing import NOW_MS, WITHIN, counted, list_of_errors, viewer
from tests.unit.query.parts.reading import ViewsInMemory
from tests.unit.query.parts.recounting import DAY_MS, T0_MS, a_view, counts_at

SINCE_MS = T0_MS + 2 * DAY_MS
RANGE = {"from": str(SINCE_MS), "to": str(SINCE_MS + 2 * DAY_MS)}
#: With which of these errors are compared with what was: no, since a moment of the range, or against another range.
AGAINST = {
    "nothing": {},
    "since": {"since": str(SINCE_MS)},
    "previous": RANGE | {"compare": "previous"},
    # With hours between, that nobody asks about; within the range itself; after it.
    "earlier": {"from": str(SINCE_MS + DAY_MS), "to": str(SINCE_MS + 2 * DAY_MS + 1), "compare": str(T0_MS)},
    "within": RANGE | {"compare": str(SINCE_MS + DAY_MS // 2)},
    "later": {"from": str(T0_MS), "to": str(T0_MS + DAY_MS), "compare": str(SINCE_MS + 1)},
}


@pytest.mark.parametrize("since", [None, T0_MS + 2 * DAY_MS])
def test_errors_are_counted_with_texts_places_and_samples(engine: Engine, views: list[View], since: int | None) -> None:
    answer = list_of_errors(engine, views, **({"since": str(since)} if since else {}))

    kept = counted(views)
    codes = Counter(view.error_code for view in kept if view.error_code)
    assert (answer.n, answer.with_error, answer.codes) == (len(kept), codes.total(), 3)
    assert {one.code: one.views for one in answer.errors} == codes
    for one in answer.errors:
        own = [view for view in kept if view.error_code == one.code]
        times = [counts_at(view) for view in own]
        assert one.share.value == len(own) / len(kept)
        assert one.viewers == len({viewer(view) for view in own} - {None})
        assert one.failed == sum(view.playback_failed or view.startup_failed for view in own)
        assert (one.first_ms, one.last_ms) == (min(times), max(times))
        assert {text.value: text.views for text in one.texts} == Counter(
            view.error_message for view in own if view.error_message
        )
        assert {place.value: place.views for place in one.by["player_version"]} == Counter(
            view.player_version for view in own
        )
        newest = sorted(own, key=lambda view: (-counts_at(view), view.customer_id, view.view_id))[:5]
        assert [sample.view_id for sample in one.samples] == [view.view_id for view in newest]
        if since is not None:
            earlier = [view for view in own if counts_at(view) < since]
            before = [view for view in kept if counts_at(view) < since]
            assert one.is_new == (not earlier)
            assert one.before is not None
            assert (one.before.value, one.before.n) == (len(earlier) / len(before), len(before))


def with_code(view_id: str, code: str | None, at_ms: int) -> View:
    times = {"view_start_ms": at_ms, "view_end_ms": at_ms, "last_append_ms": at_ms, "first_append_ms": at_ms}
    return a_view(random.Random(view_id), view_id, error_code=code, error_message=None, deleted=False, **times)


def test_a_code_that_paused_for_longer_than_the_range_is_not_new_and_says_when_it_was_first(engine: Engine) -> None:
    from_ms, since_ms = T0_MS + 40 * DAY_MS, T0_MS + 40 * DAY_MS + 12 * HOUR_MS
    first_ms = from_ms - 20 * DAY_MS + 7
    views = [
        with_code("long ago", "ancient", from_ms - 30 * DAY_MS - 1),
        with_code("in time", "edge", from_ms - 30 * DAY_MS),
        with_code("paused", "paused", first_ms),
        *(with_code(f"{code} now", code, since_ms + HOUR_MS) for code in ("ancient", "edge", "paused", "fresh")),
        *(with_code(f"fine {number}", None, from_ms + number) for number in range(3)),
    ]
    given = {"from": str(from_ms), "to": str(from_ms + DAY_MS), "since": str(since_ms)}

    answer = list_of_errors(engine, views, **given)

    by_code = {one.code: one for one in answer.errors}
    assert answer.seen_from_ms == from_ms - 30 * DAY_MS
    assert {code for code, one in by_code.items() if one.is_new} == {"ancient", "fresh"}
    assert (by_code["paused"].first_ms, by_code["edge"].first_ms) == (first_ms, from_ms - 30 * DAY_MS)
    assert {by_code[code].first_ms for code in ("ancient", "fresh")} == {since_ms + HOUR_MS}
    # Views before the range are of none of its counts.
    assert (answer.n, {one.views for one in answer.errors}) == (7, {1})
    ordered = list_of_errors(engine, views, **given, order_by="first_seen", order="ascending")
    assert [one.code for one in ordered.errors] == ["edge", "paused", "ancient", "fresh"]


def test_codes_are_those_by_which_a_filter_finds_their_views_also_long_ones(engine: Engine) -> None:
    long = "PIPELINE_ERROR " * 10
    views = [
        with_code("before", f"{long}, before", T0_MS - HOUR_MS),
        with_code("one", f"{long}, one", T0_MS + HOUR_MS),
        with_code("two", f"{long}, two", T0_MS + 2 * HOUR_MS),
        with_code("short", "short", T0_MS + HOUR_MS),
    ]
    given = {"from": str(T0_MS), "to": str(T0_MS + DAY_MS), "since": str(T0_MS + 1)}

    answer = list_of_errors(engine, views, **given)

    assert [(one.code, one.views, one.is_new) for one in answer.errors] == [(long[:100], 2, False), ("short", 1, True)]
    assert (answer.with_error, answer.codes) == (3, 2)
    # By what is listed, and by what a view has.
    for code in (long[:100], f"{long}, one"):
        narrowed = json.dumps({"dimension": "error_code", "in": [code]})
        found = list_of_errors(engine, views, **given, filter=narrowed)
        assert (found.n, [one.code for one in found.errors]) == (2, [long[:100]])


async def test_where_the_days_before_have_too_many_views_the_range_alone_says_what_is_new(engine: Engine) -> None:
    class Short(ViewsInMemory):
        async def rows(self, question: Question, asked: Any) -> Any:
            if question.range.from_ms < T0_MS:
                raise TooManyRows
            return await super().rows(question, asked)

    views = [with_code("before", "net", T0_MS - HOUR_MS), with_code("now", "net", T0_MS + HOUR_MS)]
    given = [("from", str(T0_MS)), ("to", str(T0_MS + DAY_MS)), ("since", str(T0_MS + 1))]
    asked = errors.understood(parsed(AskedErrors, given), lambda _: EVERY_CUSTOMER, NOW_MS, days_max=400)

    answer = await Lists(Short(engine, views)).errors(asked)

    assert answer.seen_from_ms == T0_MS
    assert [(one.first_ms, one.is_new) for one in answer.errors] == [(T0_MS + HOUR_MS, True)]


@pytest.mark.thorough
def test_pages_of_errors_are_the_whole_list_and_know_all_views(engine: Engine, views: list[View]) -> None:
    whole = list_of_errors(engine, views)
    pages = [list_of_errors(engine, views, limit="1")]
    while (cursor := pages[-1].next) is not None:
        pages.append(list_of_errors(engine, views, limit="1", cursor=cursor))

    assert whole.next is None
    assert [one for page in pages for one in page.errors] == whole.errors
    assert {(page.n, page.with_error, page.codes) for page in pages} == {(whole.n, whole.with_error, 3)}


@pytest.fixture(scope="module")
def with_many_codes(views: list[View]) -> list[View]:
    """A dozen codes of different frequency; one has four views, all of them late, and one is over."""
    chance = random.Random(5)
    found = []
    for number, view in enumerate([*views, *(structs.replace(view, view_id=f"{view.view_id}b") for view in views)]):
        code = chance.choice([None, *(f"code {chance.randrange(1 + rank)}" for rank in range(9))])
        if code == "code 8" and counts_at(view) >= SINCE_MS:
            code = None
        found.append(structs.replace(view, error_code=code, error_message=None, view_id=f"{view.view_id} {number}"))
    late = [view for view in found if DAY_MS < counts_at(view) - SINCE_MS < 2 * DAY_MS and not view.deleted][:4]
    return [structs.replace(view, error_code="fresh") if view in late else view for view in found]


def beside(against: str) -> Span:
    """The range that is compared with."""
    from_ms, to_ms = (int(AGAINST[against][name]) for name in ("from", "to"))
    compare = AGAINST[against]["compare"]
    begin_ms = 2 * from_ms - to_ms if compare == "previous" else int(compare)
    return Span(begin_ms, begin_ms + to_ms - from_ms)


def seen_before(views: list[View], from_ms: int) -> list[View]:
    """Those of the days before a range in which codes are looked for."""
    return [
        view for view in views if not view.deleted and from_ms - LOOK_BACK_DAYS * DAY_MS <= counts_at(view) < from_ms
    ]


def order_of_errors(views: list[View], order_by: str, against: str, *, is_ascending: bool) -> list[str]:
    """The codes in their order, counted in Python."""
    within = {name: int(value) for name, value in (WITHIN | AGAINST[against]).items() if value.isdigit()}
    from_ms, to_ms = within["from"], within["to"]
    later_from = within.get("since", from_ms)
    before = Span(from_ms, later_from) if "compare" not in AGAINST[against] else beside(against)
    kept, earlier, later = (
        [view for view in views if not view.deleted and begin <= counts_at(view) < end]
        for begin, end in ((from_ms, to_ms), (before.from_ms, before.to_ms), (later_from, to_ms))
    )

    def place(code: str) -> float:
        times = [counts_at(view) for view in kept if view.error_code == code]
        shares = [sum(view.error_code == code for view in of) / len(of) for of in (later, earlier) if of]
        first = [*times, *(counts_at(view) for view in seen_before(views, from_ms) if view.error_code == code)]
        found = {"views": len(times), "first_seen": min(first), "last_seen": max(times)}
        return shares[0] - shares[1] if order_by == "change" else found[order_by]

    codes = {view.error_code for view in kept if view.error_code}
    return sorted(codes, key=lambda code: (place(code) * (1 if is_ascending else -1), code))


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["descending", "ascending"])
@pytest.mark.parametrize(
    ("order_by", "against"),
    [
        *(("views", against) for against in AGAINST),
        *(("change", against) for against in AGAINST if against != "nothing"),
        *((order_by, against) for order_by in ("first_seen", "last_seen") for against in ("nothing", "previous")),
    ],
)
def test_errors_come_in_the_order_that_is_asked_for_page_by_page(
    engine: Engine, with_many_codes: list[View], order_by: str, against: str, order: str
) -> None:
    given = AGAINST[against] | {"order_by": order_by, "order": order}
    pages = [list_of_errors(engine, with_many_codes, limit="4", **given)]
    while (cursor := pages[-1].next) is not None:
        pages.append(list_of_errors(engine, with_many_codes, limit="4", cursor=cursor, **given))
        assert len(pages) < 10
    found = [one for page in pages for one in page.errors]
    assert len(pages) > 1
    assert [one.code for one in found] == order_of_errors(
        with_many_codes, order_by, against, is_ascending=order == "ascending"
    )
    assert found == list_of_errors(engine, with_many_codes, **given).errors


@pytest.mark.thorough
def test_a_new_error_of_few_views_is_the_first_of_those_that_began_last_and_among_those_that_rose(
    engine: Engine, with_many_codes: list[View]
) -> None:
    for against in ("since", "previous"):
        codes = {
            order_by: [
                one.code
                for one in list_of_errors(engine, with_many_codes, order_by=order_by, **AGAINST[against]).errors
            ]
            for order_by in ("views", "change", "first_seen")
        }
        assert codes["views"].index("fresh") > codes["change"].index("fresh")
        assert codes["first_seen"][0] == "fresh"


@pytest.mark.parametrize("against", [name for name, given in AGAINST.items() if "compare" in given])
def test_errors_beside_another_range_are_counted_in_the_range_alone(
    engine: Engine, with_many_codes: list[View], against: str
) -> None:
    from_ms, to_ms = (int(AGAINST[against][name]) for name in ("from", "to"))
    answer = list_of_errors(engine, with_many_codes, **AGAINST[against])
    alone = list_of_errors(engine, with_many_codes, **{"from": str(from_ms), "to": str(to_ms)})
    span = beside(against)
    assert answer.compared == span
    assert answer.about.range == Span(from_ms, to_ms)
    assert (answer.n, answer.with_error, answer.codes) == (alone.n, alone.with_error, alone.codes)
    without = [structs.replace(one, is_new=None, before=None, after=None) for one in answer.errors]
    assert without == alone.errors
    before = [view for view in with_many_codes if not view.deleted and span.from_ms <= counts_at(view) < span.to_ms]
    for one in answer.errors:
        own = sum(view.error_code == one.code for view in before)
        known = own + sum(view.error_code == one.code for view in seen_before(with_many_codes, from_ms))
        assert (one.is_new, one.before, one.after) == (known == 0, Figure(own / len(before), len(before)), one.share)
    if against == "previous":
        assert [one.code for one in answer.errors if one.is_new] == ["fresh"]


def test_hours_between_two_ranges_of_errors_are_not_read() -> None:
    def unread(**given: str) -> Range | None:
        asked = parsed(AskedErrors, list((RANGE | given).items()))
        return errors.understood(asked, lambda _: EVERY_CUSTOMER, NOW_MS, days_max=400).question.unread

    assert unread(compare=str(SINCE_MS - 300 * DAY_MS + 1)) == Range(SINCE_MS - 298 * DAY_MS + HOUR_MS, SINCE_MS)
    assert unread(compare=str(SINCE_MS + 9 * DAY_MS)) == Range(SINCE_MS + 2 * DAY_MS, SINCE_MS + 9 * DAY_MS)
    for near in ("previous", str(SINCE_MS + 1), str(SINCE_MS - 2 * DAY_MS - 1), ""):
        assert unread(compare=near) is None


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"order_by": "change"}, "order_by"),
        ({"order_by": "code"}, "order_by"),
        ({"since": str(SINCE_MS), "compare": "previous"}, "compare"),
        ({"compare": "a week before"}, "compare"),
        ({"compare": "9" * 400}, "compare"),
        ({"from": "1970-01-02", "to": "1970-02-02", "compare": "previous"}, "compare"),
    ],
)
def test_a_wrong_question_for_errors_names_the_parameter(
    engine: Engine, views: list[View], given: dict[str, str], parameter: str
) -> None:
    with pytest.raises(Wrong) as wrong:
        list_of_errors(engine, views, **given)
    assert wrong.value.faults[0].parameter == parameter


@pytest.mark.parametrize(
    "other",
    [{"order_by": "change"}, {"order": "ascending"}, {"order_by": "last_seen"}, {"since": str(SINCE_MS + 1)}],
)
def test_a_cursor_of_errors_belongs_to_their_order(
    engine: Engine, with_many_codes: list[View], other: dict[str, str]
) -> None:
    given = AGAINST["since"] | {"limit": "2"}
    cursor = list_of_errors(engine, with_many_codes, **given).next
    assert cursor is not None
    with pytest.raises(Wrong) as wrong:
        list_of_errors(engine, with_many_codes, **given | {"cursor": cursor} | other)
    assert wrong.value.faults[0].parameter == "cursor"
