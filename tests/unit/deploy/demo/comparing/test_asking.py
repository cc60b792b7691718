"""The API's answers beside the players' truth: a wrong suspect and a wrong figure are seen."""

import json
from typing import Any

import pytest

from deploy.demo.comparing import asking
from deploy.demo.comparing.asking import PERCENTILE, RATIO, VIEWS_MIN, Api, Figures, broken_down, filters_of, holds
from loadtest.incident import incident_of

INCIDENT = incident_of(60)
COHORT = {"cdn": INCIDENT.cdn, "asn": INCIDENT.asn, "player_version": INCIDENT.player_version}


def a_row(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "customer_id": ("acme", "globex")[number % 2],
        "source": ("mux", "cmcd")[number % 2],
        "cdn": ("fastly", None, "akamai")[number % 3],
        "asn": 64_500 + number % 3,
        "country": ("DE", "FR")[number % 2],
        "player_version": ("4.2.0", None)[number % 2],
        "player_name": "main",
        "stream_type": "live",
        "end_reason": "clean",
        "error_code": None,
        "playback_failed": number % 5 == 0,
        "startup_failed": False,
        "ebvs": False,
        "startup_ms": 10 * number if number % 7 else None,
        "watch_ms": 1_000 * number,
        "rebuffer_ms": 10 * number,
        "rebuffer_count": number,
        **fields,
    }


ROWS = [a_row(number) for number in range(VIEWS_MIN)]


class FakeApi(Api):
    """Answers from the same rows, but for what the test makes wrong; `off` are metrics by country, each times a factor."""

    def __init__(
        self, suspect: dict[str, str] | None, *, off: dict[str, float] | None = None, is_now_blind: bool = False
    ) -> None:
        super().__init__(0, "")
        object.__setattr__(self, "is_now_blind", is_now_blind)
        object.__setattr__(self, "suspect", suspect)
        object.__setattr__(self, "off", off or {})

    suspect: dict[str, str] | None
    off: dict[str, float]
    is_now_blind: bool

    def ask(self, path: str, **parameters: str) -> dict[str, Any]:
        if path == "/v1/suspects":
            if parameters.get("customer") == "*" and self.is_now_blind:
                return {"suspects": []}
            conditions = [{"dimension": name, "value": value} for name, value in (self.suspect or {}).items()]
            return {"suspects": [{"conditions": conditions}] if conditions else []}
        groups = broken_down(ROWS, parameters["by"], json.loads(parameters["filter"]))
        factors = self.off if parameters["by"] == "country" else {}

        def figure(of: Figures, name: str) -> dict[str, Any]:
            value = of[name]
            return {"value": value and value * factors.get(name, 1), "n": 1}

        names = parameters["metrics"].split(",")
        return {
            "groups": [
                {"key": [key], "metrics": {name: figure(figures, name) for name in names}}
                for key, figures in groups.items()
            ]
        }


def verdicts(api: Api, rows: list[dict[str, Any]]) -> list[bool | None]:
    return [line.ok for line in asking.lines(api, rows, INCIDENT, 1_000_000_000)]


def test_the_incident_named_first_and_equal_figures_are_right() -> None:
    assert verdicts(FakeApi(INCIDENT.cohort), ROWS) == [True, True, True]


def test_an_incident_that_screen_now_does_not_name_differs() -> None:
    assert verdicts(FakeApi(INCIDENT.cohort, is_now_blind=True), ROWS) == [False, True, True]


def test_now_is_asked_as_the_page_asks_it() -> None:
    asked: dict[str, str] = {}

    class Noting(FakeApi):
        def ask(self, path: str, **parameters: str) -> dict[str, Any]:
            asked.update(parameters)
            return super().ask(path, **parameters)

    asking.suspects_of_now(Noting(None), 1_700_000_012_345)

    # `useQuestion` of static/parts/data/asking.js over the last hour: whole minutes, the one under way included.
    assert (asked["from"], asked["to"]) == ("1699996440000", "1700000040000")
    assert asked.keys() == {"customer", "tz", "from", "to", "metric", "limit"}


@pytest.mark.parametrize("suspect", [None, {"cdn": "fastly"}, {**INCIDENT.cohort, "country": "DE"}])
def test_another_suspect_differs_unless_there_are_too_few_views_to_tell(suspect: dict[str, str] | None) -> None:
    assert verdicts(FakeApi(suspect), ROWS)[:2] == [False, False]
    assert asking.lines(FakeApi(suspect), ROWS[: VIEWS_MIN - 1], INCIDENT, 1_000_000_000)[0].ok is None


@pytest.mark.parametrize(("metric", "factor"), [("views", 1.001), (RATIO, 1.001), (PERCENTILE, 1.011), (PERCENTILE, 0)])
def test_a_figure_that_differs_is_named_with_its_filter(metric: str, factor: float) -> None:
    line = asking.lines(FakeApi(INCIDENT.cohort, off={metric: factor}), ROWS, INCIDENT, 1_000_000_000)[2]

    assert (line.ok, line.observed, line.truth) == (False, "11", "12")
    assert 'by country under {"dimension": "customer", "in": ["acme"]}' in line.name


@pytest.mark.parametrize("factor", [0.991, 1.009])
def test_a_percentile_may_differ_by_the_error_of_its_histogram(factor: float) -> None:
    assert verdicts(FakeApi(INCIDENT.cohort, off={PERCENTILE: factor}), ROWS) == [True, True, True]


def test_figures_are_those_of_the_rows_under_the_filter() -> None:
    rows = [a_row(0, startup_ms=startup_ms, watch_ms=1_000, rebuffer_ms=50) for startup_ms in (None, 10, 30, 20)]
    rows += [a_row(0, startup_ms=None, watch_ms=0, rebuffer_ms=0, country="FR"), a_row(0, cdn="other")]
    found = broken_down(rows, "country", {"dimension": "cdn", "in": ["fastly"]})

    assert {country: (figures["views"], figures[RATIO], figures[PERCENTILE]) for country, figures in found.items()} == {
        "DE": (4, 0.05, 30),
        "FR": (1, None, None),
    }


def test_a_dozen_filters_are_asked_and_each_leaves_something_out() -> None:
    filters = [condition for _, condition in filters_of(INCIDENT)]

    assert len(filters) == 12
    assert len({json.dumps(condition) for condition in filters}) == 12
    for condition in filters:
        assert sum(holds(row, condition) for row in [*ROWS, a_row(0, **COHORT), a_row(0, stream_type="vod")]) > 0
        assert not all(holds(row, condition) for row in [*ROWS, a_row(0, **COHORT), a_row(0, stream_type="vod")])


def test_an_api_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(asking.NotAnswered):
        Api(1, "").ask("/v1/suspects")
