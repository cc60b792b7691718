"""Single views over HTTP: where they are found, who is told, and that each look is noted."""

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request
from yarl import URL

from services.accounts.core.credentials import Credential
from services.query.core.answer import About
from services.query.core.limits import VIEWERS_MAX
from services.query.core.question import Question
from services.query.core.resources.search import ViewList
from services.query.core.sql.statements import Statement
from services.query.http.app import Sources, make_app
from services.query.http.views import as_csv
from services.query.rim.processor import FoundView, ProcessorAway
from services.query.rim.single import OfBeacons, Place, Wanted
from services.query.rim.warehouse import WarehouseAway, WarehouseNew
from services.rim.database.pool import PostgresAway
from shared import codec
from shared.schemas.beacon import Beacon
from tests.unit.dashboard.door import GLOBEX_VIEWER, METRICS_TOKEN, VIEWS_TOKEN
from tests.unit.processor.applications.video_views.beacons import mux
from tests.unit.query.http.test_hostile import listening, passing_on
from tests.unit.query.parts.desk import NOW_MS, FakeAnswers, headers_of
from tests.unit.query.parts.door import NotedLooks, Nowhere, door
from tests.unit.query.parts.reading import ABOUT

T = TypeVar("T")

ROW = {
    "customer_id": "globex",
    "view_id": "v/1",
    "day": 20_000,
    "first_append_ms": 1_000,
    "last_append_ms": 90_000,
    "view_start_ms": 900,
    "view_end_ms": 80_000,
    "country": "DE",
    "custom": {"plan": "gold"},
    "events": [{"at_ms": 5, "event": "playing"}],
    "session_id": "session",
}


class Places(Nowhere):
    """Rows where the test puts them; an error is raised."""

    def __init__(self) -> None:
        self.row: dict[str, Any] | Exception | None = None
        self.landed_row: dict[str, Any] | Exception | None = None
        self.open: FoundView | Exception | None = None
        self.asked: list[Place] = []
        self.wanted: list[Wanted] = []
        self.rows_max = 100_000

    async def view(self, customer_id: str, view_id: str) -> FoundView | None:
        return _given(self.open)  # type: ignore[no-any-return]

    async def hot(self, place: Place) -> dict[str, Any] | None:
        self.asked.append(place)
        return _given(self.row)  # type: ignore[no-any-return]

    async def landed(self, place: Place) -> dict[str, Any] | None:
        return _given(self.landed_row)  # type: ignore[no-any-return]

    async def beacons(self, wanted: Wanted, make: OfBeacons[T]) -> T:
        self.wanted.append(wanted)
        rows = [
            {"partition": 0, "offset": number, "appended_ms": 10, "value": b'{"event":"play"}' if number else b"\xff"}
            for number in range(5)
        ]
        outcomes = enumerate(("requestcompleted", "requestfailed", "requestcanceled"), 1)
        rows += [
            {
                "partition": 0,
                "offset": 4 + number,
                "appended_ms": 10,
                "value": codec.BEACON.encode(_request(number, name)),
            }
            for number, name in outcomes
        ]
        found = [row for row in rows if wanted.after is None or (10, row["offset"]) > wanted.after]
        rows_max = min(wanted.rows_max, self.rows_max)
        return make(found[:rows_max], len(found) > rows_max)

    async def recording(self, customer_id: str, session_id: str) -> tuple[int, int, int] | None:
        return 3, 1_000, 2_000


def _request(number: int, outcome: str) -> Beacon:
    return msgspec.structs.replace(
        mux(number, "request", 0, view_id="v/1"),
        source_event=outcome,
        client_time_ms=900 + 100 * number,
        clock_offset_ms=0,
    )


def _given(what: Any) -> Any:
    if isinstance(what, Exception):
        raise what
    return what


class Searched:
    """Three rows of any search."""

    async def answer(self, question: Question) -> Any:
        raise NotImplementedError

    async def rows(self, question: Question, asked: Any) -> tuple[list[list[dict[str, Any]]], About]:
        raise NotImplementedError

    async def first_rows(
        self, question: Question, asked: Sequence[Statement], rows_max: int
    ) -> tuple[list[dict[str, Any]], About]:
        rows = [
            dict.fromkeys(asked[0].columns, number) | {"customer_id": "globex", "view_id": f"v{number}"}
            for number in range(3)
        ]
        return rows[:rows_max], ABOUT


@contextlib.asynccontextmanager
async def desk(kind: type[Places] = Places) -> AsyncIterator[tuple[Any, Places, NotedLooks]]:
    places, at_door = kind(), door()
    app = make_app(
        Sources(Searched(), FakeAnswers(), places, places),
        at_door,
        caller_questions_max=2,
        seconds_max=20,
        days_max=400,
        now_ms=lambda: NOW_MS,
    )
    async with TestClient(TestServer(app)) as client:
        assert isinstance(at_door.audit, NotedLooks)
        yield client, places, at_door.audit


async def get(client: Any, path: str, who: Credential = VIEWS_TOKEN, **headers: str) -> tuple[int, Any]:
    async with client.get(path, headers=headers_of(who) | headers) as answer:
        return answer.status, await answer.json()


async def test_an_open_view_is_found_at_the_processor_and_the_look_is_noted() -> None:
    async with desk() as (client, places, audit):
        places.open = FoundView("open", 1, ROW)
        status, found = await get(client, "/v1/views/v%2F1?customer=globex", GLOBEX_VIEWER)

    assert (status, found["state"], found["found_in"]) == (200, "open", "processor")
    assert found["dimensions"]["country"] == "DE"
    assert found["dimensions"]["custom.plan"] == "gold"
    assert found["dimensions"]["cdn"] is None
    assert found["events"] == [{"at_ms": 5, "event": "playing"}]
    assert found["row"]["rebuffer_ms"] == 0
    assert found["recording"]["href"] == "/replay?customer=globex&session=session"
    assert audit.noted == [("viewer@globex", "looked_at_view", "globex/v/1")]
    assert places.asked == []


async def test_an_open_view_does_not_say_what_only_its_end_decides() -> None:
    by_its_end = {
        "end_reason": "timeout",
        "view_dropped": True,
        "complete": False,
        "ebvs": True,
        "spi_good": True,
        "startup_unknown": "not_started",
    }
    dimensions = {"exit_before_start" if name == "ebvs" else name for name in by_its_end}
    async with desk() as (client, places, _):
        for state in ("open", "finished"):
            places.open = FoundView(state, 1, ROW | by_its_end | {"playback_failed": False})
            found = (await get(client, "/v1/views/v%2F1?customer=globex"))[1]
            assert {name: found["row"][name] for name in by_its_end} == (
                dict.fromkeys(by_its_end) if state == "open" else by_its_end
            )
            assert {found["dimensions"][name] is None for name in dimensions} == {state == "open"}
            # What it is so far is said.
            assert (found["dimensions"]["country"], found["dimensions"]["playback_failed"]) == ("DE", "false")
        # Later nothing becomes known of a start that was lost.
        places.open = FoundView("open", 1, ROW | by_its_end | {"startup_unknown": "start_lost"})
        found = (await get(client, "/v1/views/v%2F1?customer=globex"))[1]
        assert found["row"]["startup_unknown"] == found["dimensions"]["startup_unknown"] == "start_lost"


async def test_an_open_view_is_found_by_the_day_of_its_row_too() -> None:
    async with desk() as (client, places, _):
        places.open = FoundView("open", 1, ROW)
        # As lists of open views name it.
        found = (await get(client, "/v1/views/v%2F1?customer=globex&day=20000"))[1]
        assert (found["state"], found["found_in"]) == ("open", "processor")
        # Of an id that was used before, the former view is over.
        assert (await get(client, "/v1/views/v%2F1?customer=globex&day=19990"))[0] == 404
        places.row = ROW | {"day": 19_990}
        former = (await get(client, "/v1/views/v%2F1?customer=globex&day=19990"))[1]
        assert (former["state"], former["found_in"], former["row"]["day"]) == ("closed", "hot_rows", 19_990)


async def test_a_finished_view_is_found_among_hot_rows_and_then_in_the_warehouse() -> None:
    async with desk() as (client, places, _):
        places.landed_row = ROW
        assert (await get(client, "/v1/views/v?customer=globex"))[1]["found_in"] == "warehouse"
        places.row = ROW
        found = (await get(client, "/v1/views/v?customer=globex"))[1]
        assert (found["found_in"], found["state"]) == ("hot_rows", "closed")
        places.open = FoundView("finished", 1, None)
        assert (await get(client, "/v1/views/v?customer=globex&day=20000"))[1]["state"] == "finished"
        assert places.asked[-1] == Place("globex", "v", 20_000)


async def test_what_did_not_answer_is_named_and_an_unknown_view_is_unknown_only_if_all_did() -> None:
    async with desk() as (client, places, audit):
        assert (await get(client, "/v1/views/v?customer=globex"))[0] == 404
        places.open, places.row = ProcessorAway("test"), PostgresAway("test")
        status, problem = await get(client, "/v1/views/v?customer=globex")
        assert (status, problem["type"]) == (503, "urn:playhead:problem:processor-away")
        places.landed_row = ROW
        assert (await get(client, "/v1/views/v?customer=globex"))[1]["away"] == ["processor", "postgres"]
        places.landed_row, places.open = WarehouseAway("test"), None
        assert (await get(client, "/v1/views/v?customer=globex"))[0] == 503
        assert len(audit.noted) == 1


async def test_a_view_of_a_new_installation_is_not_known_because_none_is_stored_yet() -> None:
    async with desk() as (client, places, _):
        places.landed_row = WarehouseNew("test")
        for path in ("/v1/views/v", "/v1/views/v/beacons"):
            status, problem = await get(client, f"{path}?customer=globex")
            assert (status, problem["type"]) == (503, "urn:playhead:problem:warehouse-new")
        places.row = PostgresAway("test")
        assert (await get(client, "/v1/views/v?customer=globex"))[1]["type"] == "urn:playhead:problem:postgres-away"
        places.row = ROW
        assert (await get(client, "/v1/views/v?customer=globex"))[1]["found_in"] == "hot_rows"


async def test_another_organisations_view_does_not_exist_and_figures_open_none() -> None:
    async with desk() as (client, places, audit):
        places.row = ROW
        for path in ("/v1/views/v", "/v1/views/v/beacons", "/v1/views/v/requests", "/v1/views/v/timeline"):
            others = await get(client, f"{path}?customer=acme")
            assert others == await get(client, f"{path}?customer=no-such")
            assert others[0] == 404
            assert (await get(client, f"{path}?customer=globex", METRICS_TOKEN))[0] == 403
            assert (await get(client, path))[0] == 400
        assert (await get(client, "/v1/views?customer=acme"))[0] == 404
        assert (await get(client, "/v1/views", METRICS_TOKEN))[0] == 403
        assert places.asked == []
        assert audit.noted == []


async def test_what_cannot_be_noted_is_not_shown() -> None:
    async with desk() as (client, places, audit):
        places.row, audit.problem = ROW, PostgresAway("test")
        for path in ("views/v", "views/v/beacons", "views/v/requests", "views/v/timeline"):
            assert (await get(client, f"/v1/{path}?customer=globex"))[0] == 503
        assert (await get(client, "/v1/views?viewer=x"))[0] == 503
        # A search that names no viewer needs no note.
        assert (await get(client, "/v1/views"))[0] == 200


async def test_beacons_come_in_pages_and_bytes_that_are_no_json_as_they_are() -> None:
    async with desk() as (client, places, audit):
        places.row = ROW
        path = "/v1/views/v/beacons?customer=globex&limit=2"
        status, first = await get(client, path)
        assert status == 200
        assert [one["beacon"] for one in first["beacons"]] == [None, {"event": "play"}]
        assert first["beacons"][0]["bytes"] == "/w=="
        second = (await get(client, f"{path}&cursor={first['next']}"))[1]
        third = (await get(client, f"{path}&cursor={second['next']}"))[1]
        last = (await get(client, f"{path}&cursor={third['next']}"))[1]
        assert [one["offset"] for one in second["beacons"] + third["beacons"] + last["beacons"]] == [*range(2, 8)]
        assert "next" not in last
        for other in (
            f"{path}&cursor=x",
            f"{path}&day=3&cursor={first['next']}",
            path.replace("/v/", "/w/") + f"&cursor={first['next']}",
        ):
            status, problem = await get(client, other)
            assert (status, problem["errors"][0]["parameter"]) == (400, "cursor"), other
        assert {action for _, action, _ in audit.noted} == {"looked_at_beacons"}
        assert places.wanted[0] == Wanted("globex", "v/1", 1_000, 90_000, 2, 8_000_000)
        # A page of large beacons ends before it has all that were asked for.
        places.rows_max = 1
        short = (await get(client, path))[1]
        assert [one["offset"] for one in short["beacons"]] == [0]
        assert [one["offset"] for one in (await get(client, f"{path}&cursor={short['next']}"))[1]["beacons"]] == [1]


async def test_requests_come_in_pages_and_each_look_is_noted() -> None:
    async with desk() as (client, places, audit):
        places.row = ROW | {"source": "mux"}
        path = "/v1/views/v%2F1/requests?customer=globex&limit=2"
        status, first = await get(client, path)
        assert (status, first["view_id"], first["beacons_n"], first["requests_n"]) == (200, "v/1", 8, 3)
        assert [(one["at_ms"], one["outcome"]) for one in first["requests"]] == [(100, "completed"), (200, "failed")]
        second = (await get(client, f"{path}&cursor={first['next']}"))[1]
        assert [one["outcome"] for one in second["requests"]] == ["canceled"]
        assert "next" not in second
        for other in (f"{path}&cursor=x", path.replace("v%2F1", "w") + f"&cursor={first['next']}"):
            assert (await get(client, other))[0] == 400, other
        for other in ("limit=0", "limit=1001", "event=request"):
            assert (await get(client, f"{path}&{other}"))[0] == 400, other
        assert set(audit.noted) == {("a token", "looked_at_requests", "globex/v/1")}
        # As many beacons as the document says (docs/query.md), of this view alone, from the first one on for each page.
        assert set(places.wanted) == {Wanted("globex", "v/1", 1_000, 90_000, 10_000, 32_000_000)}
        places.row = ROW | {"source": "cmcd", "view_id": "v/1.2", "view_epoch": 2}
        await get(client, path)
        assert places.wanted[-1].view_id == "v/1"
        places.row = None
        assert (await get(client, path))[0] == 404
        places.row = PostgresAway("test")
        assert (await get(client, path))[0] == 503


async def test_a_search_is_csv_where_that_is_accepted_with_a_link_to_the_next_page() -> None:
    async with desk() as (client, _, audit):
        path = "/v1/views?columns=country,is_bot&limit=2&viewer=somebody"
        for headers, asked in (({"Accept": "text/csv"}, path), ({}, f"{path}&format=csv")):
            async with client.get(asked, headers=headers_of(VIEWS_TOKEN) | headers) as answer:
                assert answer.content_type == "text/csv"
                lines = (await answer.text()).splitlines()
                assert lines[0] == "customer_id,view_id,day,counted_ms,country,is_bot"
                assert lines[1].startswith("globex,v0,")
                assert len(lines) == 3
                assert answer.links["next"]["url"].query["cursor"]
        for headers in ({"Accept": "application/json, text/csv"}, {"Accept": "*/*"}):
            assert (await get(client, path, **headers))[1]["columns"][0] == "customer_id"
        assert set(audit.noted) == {("a token", "looked_at_viewer", "somebody"), ("a token", "exported_views", "*")}
        audit.problem = PostgresAway("away")
        assert (await get(client, "/v1/views?format=csv"))[0] == 503


async def test_a_search_as_csv_with_a_long_filter_has_a_link_to_its_next_page_through_the_dashboard() -> None:
    names = ", ".join(f'"{number:036d}"' for number in range(300))
    query = {
        "columns": "country",
        "limit": "2",
        "format": "csv",
        "filter": f'{{"dimension": "video_id", "in": [{names}]}}',
    }
    app = make_app(
        Sources(Searched(), FakeAnswers(), Nowhere()),
        door(),
        caller_questions_max=2,
        seconds_max=20,
        days_max=400,
        now_ms=lambda: NOW_MS,
    )
    async with (
        listening(app) as port,
        passing_on(f"http://127.0.0.1:{port}") as before,
        aiohttp.ClientSession(f"http://127.0.0.1:{before}", max_field_size=1 << 20) as client,
    ):
        asked = URL("/v1/views").with_query(query)
        for _ in range(2):
            async with client.get(asked, headers=headers_of(VIEWS_TOKEN)) as answer:
                assert answer.status == 200, await answer.text()
                assert len((await answer.text()).splitlines()) == 3
                asked = answer.links["next"]["url"].relative()


@pytest.mark.parametrize("path", ["/v1/views", "/v1/views?format=csv"])
async def test_each_viewer_that_a_search_names_is_a_row_of_the_log(path: str) -> None:
    viewers = [f"viewer-{number:03}-{'x' * 80}" for number in range(VIEWERS_MAX - 1)]
    many = json.dumps({"or": [{"dimension": "viewer", "in": viewers}, {"dimension": "viewer", "contains": "ann"}]})
    async with desk() as (client, _, audit):
        async with client.get(path, params={"filter": many}, headers=headers_of(VIEWS_TOKEN)) as answer:
            assert answer.status == 200
        looks = [target for _, action, target in audit.noted if action == "looked_at_viewer"]
        assert looks == [*viewers, "contains: ann"]
        audit.problem = PostgresAway("away")
        part = json.dumps({"not": {"dimension": "viewer", "contains": "ann"}})
        async with client.get(path, params={"filter": part}, headers=headers_of(VIEWS_TOKEN)) as answer:
            assert answer.status == 503


async def test_a_search_as_csv_has_no_formula() -> None:
    values = {"video_title": '=HYPERLINK("https://evil.example")', "rebuffer_ms": -1, "is_bot": True, "country": None}
    found = ViewList(ABOUT, list(values), [values])
    answer = as_csv(make_mocked_request("GET", "/v1/views"), found)
    assert (
        answer.body
        == b'video_title,rebuffer_ms,is_bot,country\r\n"\'=HYPERLINK(""https://evil.example"")",-1,true,\r\n'
    )
