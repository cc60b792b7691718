"""The HTTP application before answers that the test sets."""

import asyncio
from typing import Any

import jsonschema
import msgspec
import pytest
from openapi_spec_validator import validate

from services.query.answering import TooManyRows, Unsettled
from services.query.core.answer import Breakdown, Figure, Group, Overall
from services.query.core.customers import Customers
from services.query.core.resources.errors.errors import ErrorCode, ErrorList, Sample
from services.query.http.app import OPERATIONS, ROUTING
from services.query.listing import Lists
from services.query.rim.engine import TooLarge
from services.query.rim.warehouse import WarehouseAway, WarehouseNew
from services.rim.database.pool import NotPublished, PostgresAway
from services.rim.http.openapi import Operation
from services.rim.turns.rates import TooManyRequests
from tests.unit.dashboard.door import ENDED, GLOBEX_VIEWER, METRICS_TOKEN, OWNER, VIEWS_TOKEN
from tests.unit.query.parts.desk import ABOUT, NOW_MS, SUSPECTS, desk, headers_of


async def test_an_answer_is_that_of_the_question_for_the_callers_customers() -> None:
    async with desk() as at:
        status, found = await at.get("/v1/overall", metrics="views,rebuffer_fraction")

    assert (status, found["n"], found["metrics"]) == (200, 3, {"views": {"value": 3, "n": 3}})
    (question,) = at.answers.asked
    assert question.customers == Customers(("globex", "globex-tv"))
    assert [metric.name for metric in question.metrics] == ["views", "rebuffer_fraction"]


@pytest.mark.parametrize("path", [one.path for one in OPERATIONS if "exports" not in one.path])
async def test_without_a_session_or_a_token_nothing_is_said(path: str) -> None:
    async with desk() as at:
        lacking = METRICS_TOKEN if path.startswith("/v1/views") else VIEWS_TOKEN
        for who, expected in ((None, 401), (ENDED, 401), (lacking, 403)):
            status, problem = await at.get(path.replace("{", "").replace("}", ""), who, customer="globex")
            assert (status, problem["status"]) == (expected, expected)
    assert not at.answers.asked


@pytest.mark.parametrize("one", [one for one in OPERATIONS if "exports" in one.path], ids=lambda one: one.name)
async def test_exports_are_nobodys_without_a_session_or_a_token(one: Operation) -> None:
    async with desk() as at:
        path = one.path.replace("{export_id}", "0" * 32)
        for who in (None, ENDED):
            async with at.client.request(one.method, path, headers=headers_of(who)) as answer:
                assert answer.status == 401
        # There is no folder for them here.
        async with at.client.request(one.method, path, headers=headers_of(VIEWS_TOKEN)) as answer:
            assert (answer.status, (await answer.json())["type"]) == (404, "urn:playhead:problem:exports-off")


async def test_a_person_and_a_token_see_what_is_theirs_and_the_installations_owner_all() -> None:
    async with desk() as at:
        for who in (GLOBEX_VIEWER, OWNER):
            assert (await at.get("/v1/overall", who))[0] == 200
    assert [question.customers for question in at.answers.asked] == [Customers(("globex", "globex-tv")), Customers()]


async def test_while_accounts_are_away_nobody_is_let_in() -> None:
    async with desk() as at:
        at.known.problem = PostgresAway("test")
        status, problem = await at.get("/v1/overall")
        assert (status, problem["type"]) == (503, "urn:playhead:problem:postgres-away")
    assert not at.answers.asked


#: Every route of the API that names a customer, with what it wants beside it. Others give nothing of one, or are told apart below.
OF_CUSTOMERS: dict[str, dict[str, str]] = {
    "/v1/overall": {},
    "/v1/timeseries": {},
    "/v1/breakdown": {"by": "country"},
    "/v1/distribution": {"of": "startup_ms"},
    "/v1/suspects": {"metric": "rebuffer_fraction"},
    "/v1/errors": {},
    "/v1/titles": {},
    "/v1/titles/{video_id}": {},
    "/v1/concurrency": {},
    "/v1/views": {},
    "/v1/views/{view_id}": {},
    "/v1/views/{view_id}/beacons": {},
    "/v1/views/{view_id}/requests": {},
    "/v1/views/{view_id}/timeline": {},
}
#: Names of figures and dimensions, and the document: nothing of anybody's.
OF_NOBODY = {"/v1/metrics", "/v1/dimensions", "/v1/openapi.json"}


async def test_a_customer_that_the_caller_may_not_see_does_not_exist_in_any_route() -> None:
    async with desk() as at:
        found = {path for method, path in at.client.app[ROUTING].listed() if method != "HEAD"}
        # Another organisation's exports: test_exports.py.
        assert {path for path in found if "exports" not in path} == OF_CUSTOMERS.keys() | OF_NOBODY
        for path, given in OF_CUSTOMERS.items():
            who = VIEWS_TOKEN if path.startswith("/v1/views") else METRICS_TOKEN
            wanted = path.replace("{", "").replace("}", "")
            answers = [await at.get(wanted, who, customer=customer, **given) for customer in ("acme", "no-such")]
            assert answers[0] == answers[1], path
            assert answers[0][0] == 404, path
            assert answers[0][1]["type"] == "urn:playhead:problem:unknown-customer"
    assert not at.answers.asked


ONE_VIEWER = '{"not": {"or": [{"dimension": "viewer", "in": ["jane"]}, {"dimension": "viewer", "contains": "ann"}]}}'
OF_FIGURES = {path: given for path, given in OF_CUSTOMERS.items() if not path.startswith("/v1/views")}


@pytest.mark.parametrize(
    ("path", "given", "named"),
    [
        *((path, given | {"filter": ONE_VIEWER}, ["jane", "contains: ann"]) for path, given in OF_FIGURES.items()),
        ("/v1/timeseries", {"by": "viewer"}, []),
        ("/v1/breakdown", {"by": "viewer,video_title"}, []),
        ("/v1/suspects", {"metric": "rebuffer_fraction", "dimensions": "cdn,viewer"}, []),
    ],
)
async def test_figures_of_single_viewers_are_for_those_who_may_see_views_and_looks_at_them_are_noted(
    path: str, given: dict[str, str], named: list[str]
) -> None:
    path = path.replace("{", "").replace("}", "")
    async with desk() as at:
        status, problem = await at.get(path, **given)
        assert (status, problem["detail"]) == (403, "this needs the permission read_views")
        at.audit.problem = PostgresAway("test")
        assert not at.audit.noted
        if named:
            # What cannot be noted is not shown.
            assert (await at.get(path, GLOBEX_VIEWER, **given))[0] == 503
            at.audit.problem = TooManyRequests(2)
            assert (await at.get(path, GLOBEX_VIEWER, **given))[0] == 429
        assert not at.answers.asked
        at.audit.problem = None
        # Who reads the rows of it: the answer does not matter.
        at.answers.found = TooManyRows()
        await at.get(path, GLOBEX_VIEWER, **given)
        assert at.answers.asked
        assert at.audit.noted == [("viewer@globex", "looked_at_viewer", one) for one in named]


@pytest.mark.parametrize("path", ["/v1/titles", "/v1/concurrency"])
async def test_the_names_of_titles_are_those_of_the_callers_customers(path: str) -> None:
    async with desk() as at:
        at.answers.found = Breakdown(ABOUT, ["video_id"], 0, [])
        status, _ = await at.get(path)

    assert status == 200
    assert [question.customers for question in at.answers.asked] == [Customers(("globex", "globex-tv"))] * 2


async def test_suspects_are_sought_among_the_callers_customers() -> None:
    async with desk() as at:
        status, found = await at.get("/v1/suspects", metric="rebuffer_fraction")
        wrong, problem = await at.get("/v1/suspects", metric="views")
        missing, _ = await at.get("/v1/suspects")
        other, _ = await at.get("/v1/suspects", metric="rebuffer_fraction", customer="acme")

        refused = [
            await at.get("/v1/suspects", metric="bitrate_bps", below=text) for text in ("nan", "-1", "1e99", "a")
        ]

    assert (status, wrong, missing, other) == (200, 400, 400, 404)
    assert [(one, problem["errors"][0]["parameter"]) for one, problem in refused] == [(400, "below")] * 4
    assert problem["errors"][0]["parameter"] == "metric"
    assert found["suspects"][0]["filter"] == {"dimension": "cdn", "in": [None]}
    assert [question.customers for question in at.answers.asked] == [Customers(("globex", "globex-tv"))]


async def test_a_wrong_question_names_the_parameter() -> None:
    async with desk() as at:
        status, problem = await at.get("/v1/breakdown", by="cdn", filter='{"dimension":"nothing","in":["a"]}')

    assert status == 400
    assert problem["errors"] == [
        {"detail": "no dimension is named 'nothing'", "pointer": "#", "parameter": "filter"},
    ]


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (TooManyRows(), 422, "too-many-views"),
        (TooLarge(), 422, "too-large"),
        (PostgresAway(), 503, "postgres-away"),
        (NotPublished(), 503, "not-published"),
        (WarehouseAway(), 503, "warehouse-away"),
        (WarehouseNew(), 503, "warehouse-new"),
        (Unsettled(), 503, "unsettled"),
    ],
)
async def test_what_cannot_be_answered_is_a_problem(error: Exception, status: int, kind: str) -> None:
    async with desk() as at:
        at.answers.found = error
        found, problem = await at.get("/v1/overall")

    assert (found, problem["type"]) == (status, f"urn:playhead:problem:{kind}")


async def test_a_question_that_takes_too_long_is_stopped() -> None:
    async with desk(seconds_max=0.01) as at:
        at.answers.holds = asyncio.Event()
        status, problem = await at.get("/v1/overall")

    assert (status, problem["type"]) == (504, "urn:playhead:problem:too-slow")
    assert at.answers.was_cancelled


async def test_a_caller_has_so_many_questions_under_way() -> None:
    async with desk(caller_questions_max=1) as at:
        at.answers.holds = asyncio.Event()
        first = asyncio.create_task(at.get("/v1/overall"))
        await at.answers.has_begun.wait()
        status, problem = await at.get("/v1/overall")
        assert (status, problem["type"]) == (429, "urn:playhead:problem:too-many-questions")
        at.answers.holds.set()
        assert (await first)[0] == 200
        assert (await at.get("/v1/overall"))[0] == 200


async def test_single_views_with_an_error_are_shown_to_those_who_may_see_views(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Sample("globex", "view-1", 20_000, NOW_MS, "viewer-1")
    code = ErrorCode("E1", 1, Figure(1.0, 1), 1, 1, NOW_MS, NOW_MS, [], {}, [sample])

    async def found(*_: Any) -> ErrorList:
        return ErrorList(ABOUT, 1, 1, 1, [code], NOW_MS)

    monkeypatch.setattr(Lists, "errors", found)
    async with desk() as at:
        for who, views in ((GLOBEX_VIEWER, ["view-1"]), (METRICS_TOKEN, [])):
            status, answer = await at.get("/v1/errors", who)
            assert status == 200
            (one,) = answer["errors"]
            assert (one["code"], [view["view_id"] for view in one["samples"]]) == ("E1", views)


async def test_the_engine_knows_whose_question_it_answers() -> None:
    async with desk() as at:
        for who in (METRICS_TOKEN, GLOBEX_VIEWER, METRICS_TOKEN):
            assert (await at.get("/v1/overall", who))[0] == 200
        assert at.answers.callers == [("globex", one) for one in ("token:t", "person:viewer-globex", "token:t")]


@pytest.mark.parametrize("path", ["/v1/overall", "/v1/metrics", "/v1/exports"])
async def test_a_caller_that_asks_too_often_is_told_when_to_ask_again(path: str) -> None:
    async with desk(requests_per_second=0.25) as at:
        assert (await at.get(path))[0] in {200, 404}
        async with at.client.get(path, headers=headers_of(METRICS_TOKEN)) as refused:
            assert refused.status == 429
            assert 1 <= int(refused.headers["Retry-After"]) <= 4
        assert (await at.get(path, GLOBEX_VIEWER))[0] in {200, 404}


@pytest.mark.thorough
async def test_the_document_is_openapi_and_describes_what_is_answered() -> None:
    async with desk() as at:
        status, document = await at.get("/v1/openapi.json", None)
        metrics = (await at.get("/v1/metrics"))[1]
        dimensions = (await at.get("/v1/dimensions"))[1]

    assert status == 200
    validate(document)
    group = Group("value", ["a", None], ["a", "(unknown)"], 3, {"views": Figure(3, 3)})
    answers = {
        "Overall": Overall(ABOUT, 3, {"views": Figure(None, 3)}),
        "Breakdown": Breakdown(ABOUT, ["cdn", "os"], 3, [group]),
        "Suspects": SUSPECTS,
        "MetricList": metrics,
        "DimensionList": dimensions,
    }
    for name, answer in answers.items():
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.validate(msgspec.json.decode(msgspec.json.encode(answer)), schema)
    assert set(document["paths"]) == {operation.path for operation in OPERATIONS}
    by = {one["name"]: one["suspects"] for one in metrics["metrics"]}
    assert by["bitrate_bps"] == {"by": "below", "parameter": "below", "largest": 10**10, "rank": 0.1}
    assert by["startup_ms_p95"] == {"by": "above", "parameter": "above_ms", "largest": 86_400_000, "rank": 0.95}
    assert (by["rebuffer_fraction"]["by"], by["views"]) == ("ratio", None)
    parameters = {one["name"]: one for one in document["paths"]["/v1/suspects"]["get"]["parameters"]}
    assert parameters["below"]["description"]
    assert parameters["below"]["schema"]["anyOf"][0] == {"type": "number", "minimum": 0, "maximum": 10**10}
    parameters = {one["name"]: one for one in document["paths"]["/v1/breakdown"]["get"]["parameters"]}
    assert parameters["by"]["required"]
    assert parameters["limit"]["schema"]["maximum"] == 1_000
    assert "from" in parameters
