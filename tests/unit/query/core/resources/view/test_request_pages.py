"""Pages of a view's requests: each request is on one page, and a wrong cursor is refused."""

import msgspec
import pytest

from services.accounts.core.pages import Page
from services.query.core.problems import Wrong
from services.query.core.resources.view import requests_of_view
from services.query.core.resources.view.requests_of_view import AskedRequests
from tests.unit.processor.applications.video_views.beacons import T0, mux, watch
from tests.unit.query.core.resources.view.test_requests_of_view import listed, rows_of


def test_pages_have_each_request_once() -> None:
    requests = [mux(11 + number, "request", 14_000 + number, request_start=T0 + number) for number in range(25)]
    beacons = [*watch(), *requests]
    (row,) = rows_of(beacons)
    pages = [listed(row, beacons, limit=10)]
    while pages[-1].next is not None:
        pages.append(listed(row, beacons, limit=10, cursor=pages[-1].next))
    assert [len(page.requests) for page in pages] == [10, 10, 5]
    assert [one for page in pages for one in page.requests] == listed(row, beacons).requests
    assert {page.requests_n for page in pages} == {25}


def test_a_request_that_comes_between_two_pages_moves_none_to_another_page() -> None:
    beacons = [*watch(), *(mux(20 + at, "request", 14_000 + at, request_start=T0 + 100 * at) for at in range(9))]
    (row,) = rows_of(beacons)
    first = listed(row, beacons, limit=4)
    assert first.next is not None
    more = [*beacons, mux(12, "request", 14_000, request_start=T0 + 150)]
    second = listed(row, more, limit=9, cursor=first.next)
    assert [*first.requests, *second.requests] == listed(row, beacons).requests
    assert (second.requests_n, second.next) == (10, None)


def test_pages_of_requests_without_numbers_have_each_once() -> None:
    begin = msgspec.structs.replace(mux(1, "viewstart", 0), source="native", seq=None)
    requests = [
        msgspec.structs.replace(begin, event="request", attrs={"request_bytes": number}) for number in range(20)
    ]
    (row,) = rows_of([begin, *requests])
    pages = [listed(row, requests, limit=3)]
    while pages[-1].next is not None:
        pages.append(listed(row, requests, limit=3, cursor=pages[-1].next))
    assert sorted(one.size_bytes or 0 for page in pages for one in page.requests) == list(range(20))


@pytest.mark.parametrize("key", ["5", "x 1 ", "1 2 g", "1 2 ", f"{'9' * 30} 1 ", "1 2 3 4", "- 1 "])
def test_a_cursor_is_refused_unless_it_is_one(key: str) -> None:
    asked = AskedRequests(customer="acme")
    page = Page("requests v1", asked)
    cursor = page.cut([key] * 1_001, str)[1] or ""
    if key == "1 2 ":
        assert requests_of_view.page_of("v1", msgspec.structs.replace(asked, cursor=cursor))[1] == (1, 2, "")
        return
    with pytest.raises(Wrong):
        requests_of_view.page_of("v1", msgspec.structs.replace(asked, cursor=cursor))
