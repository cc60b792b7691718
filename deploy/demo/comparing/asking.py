"""Asks the API what an operator would, and compares its answers with the players' truth: who is hit, and figures under filters."""

import http.client
import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from deploy.demo.comparing.compare import PERCENTILE_ERROR_MAX, Line, Row, nearest_rank
from loadtest.incident import Incident

#: With fewer views chance alone can look like the incident: nothing is checked.
VIEWS_MIN: Final = 400
#: Failures: an affected viewer stalls until the player gives up.
METRIC: Final = "playback_failure_fraction"
_SECONDS_MAX: Final = 30.0
_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
#: Around the run: clocks of some players are hours wrong, and views count at most a day before their first beacon came.
_BEFORE_MS, _AFTER_MS = 26 * _HOUR_MS, 3 * _HOUR_MS

#: Metrics of a breakdown that add up, and the field of a row that each adds up.
_SUMS: Final = {
    "views": None,
    "playback_failures": "playback_failed",
    "startup_failures": "startup_failed",
    "exits_before_start": "ebvs",
    "watch_ms": "watch_ms",
    "rebuffer_ms": "rebuffer_ms",
    "rebuffer_count": "rebuffer_count",
}
#: A ratio of two of them, and a percentile, which comes from a histogram.
RATIO: Final = "rebuffer_fraction"
PERCENTILE: Final = "startup_ms_p95"
_FIELDS: Final = {"customer": "customer_id"}
Filter = Mapping[str, Any]
#: By metric; None where no view has a value.
Figures = Mapping[str, float | None]


class NotAnswered(RuntimeError):
    """The API did not answer a question with figures."""


@dataclass(frozen=True)
class Api:
    """The public API of a running demo, by HTTP on this machine."""

    port: int
    token: str

    def ask(self, path: str, **parameters: str) -> dict[str, Any]:
        """The answer. Raises `NotAnswered`."""
        return self._call("GET", f"{path}?{urlencode(parameters)}", None, (http.HTTPStatus.OK,))

    def send(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to what is made. Raises `NotAnswered`."""
        return self._call("POST", path, json.dumps(body), (http.HTTPStatus.CREATED,))

    def _call(self, method: str, path: str, body: str | None, expected: Sequence[int]) -> dict[str, Any]:
        given = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS_MAX)) as connection:
            try:
                connection.request(method, path, body, given)
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException) as error:
                raise NotAnswered(f"{path}: {error}") from error
        if answer.status not in expected:
            raise NotAnswered(f"{path}: {answer.status} {content[:500]!r}")
        found: dict[str, Any] = json.loads(content)
        return found


def lines(api: Api, rows: Sequence[Row], incident: Incident, began_ms: int) -> list[Line]:
    """Whether Now and the API name the incident first, and give the truth's figures under a dozen filters. Raises `NotAnswered`."""
    return [
        _first_suspect("first suspect of Now", suspects_of_now(api, time.time_ns() // 1_000_000), rows, incident),
        _first_suspect("first suspect beside the time before", suspects_of(api, incident, began_ms), rows, incident),
        _figures(api, rows, incident, began_ms),
    ]


def story(incident: Incident) -> str:
    """What happened, for who watches the demo."""
    return (
        f"The incident: {incident.from_ms / 1_000:g} s after the players began, viewers by CDN {incident.cdn} over"
        f" network {incident.asn} with player version {incident.player_version} stalled until the player gave up."
        " docs/tutorial.md finds it."
    )


def suspects_of_now(api: Api, now_ms: int) -> dict[str, Any]:
    """What screen Now asks for when it is opened (`parts/notable/suspects.js`): all customers, the last hour, no baseline."""
    to_ms = (now_ms // _MINUTE_MS + 1) * _MINUTE_MS
    return api.ask(
        "/v1/suspects",
        customer="*",
        tz="UTC",
        metric=METRIC,
        limit="5",
        **{"from": str(to_ms - _HOUR_MS), "to": str(to_ms)},
    )


def suspects_of(api: Api, incident: Incident, began_ms: int) -> dict[str, Any]:
    """The suspects of the time since the incident began, beside the time before."""
    began = began_ms + incident.from_ms
    return api.ask(
        "/v1/suspects",
        metric=METRIC,
        **{"from": str(began), "to": str(began_ms + _AFTER_MS)},
        baseline_from=str(began_ms - _BEFORE_MS),
        baseline_to=str(began),
    )


def _first_suspect(name: str, answer: Mapping[str, Any], rows: Sequence[Row], incident: Incident) -> Line:
    found = answer["suspects"]
    first = {one["dimension"]: one["value"] for one in found[0]["conditions"]} if found else {}
    is_named = first == incident.cohort
    return Line(
        name,
        described(first),
        described(incident.cohort),
        is_named if len(rows) >= VIEWS_MIN or is_named else None,
    )


def described(cohort: Mapping[str, str | None]) -> str:
    """Values of dimensions, as a line has them."""
    return " ".join(f"{name}={value}" for name, value in sorted(cohort.items())) or "none"


def filters_of(incident: Incident) -> list[tuple[str, Filter]]:
    """A dozen filters, each with the dimension by which its views are broken down."""

    def one(name: str, *values: str | None) -> Filter:
        return {"dimension": name, "in": list(values)}

    cohort = {"and": [one(name, value) for name, value in incident.cohort.items()]}
    return [
        ("cdn", {"number": "watch_ms", "at_least": 10_000}),
        ("customer", one("cdn", incident.cdn)),
        ("player_version", one("asn", str(incident.asn))),
        ("asn", one("player_version", incident.player_version)),
        ("country", one("customer", "acme")),
        ("stream_type", one("country", "DE")),
        ("source", one("stream_type", "live")),
        ("end_reason", cohort),
        ("customer", {"not": cohort}),
        ("cdn", {"or": [one("country", "FR"), one("cdn", "akamai", None)]}),
        ("error_code", {"and": [one("source", "mux"), {"not": one("playback_failed", "false")}]}),
        ("player_name", {"not": {"or": [one("player_version", None), one("cdn", "fastly")]}}),
    ]


def _figures(api: Api, rows: Sequence[Row], incident: Incident, began_ms: int) -> Line:
    asked = filters_of(incident)
    differing = []
    for by, condition in asked:
        answer = api.ask(
            "/v1/breakdown",
            by=by,
            metrics=",".join((*_SUMS, RATIO, PERCENTILE)),
            limit="1000",
            filter=json.dumps(condition),
            **{"from": str(began_ms - _BEFORE_MS), "to": str(began_ms + _AFTER_MS)},
        )
        observed = {
            group["key"][0]: {name: figure["value"] for name, figure in group["metrics"].items()}
            for group in answer["groups"]
        }
        if not _are_equal(observed, broken_down(rows, by, condition)):
            differing.append(f"by {by} under {json.dumps(condition)}")
    return Line(
        "breakdowns under filters equal" + "".join(f"; not {one}" for one in differing),
        str(len(asked) - len(differing)),
        str(len(asked)),
        not differing,
    )


def broken_down(rows: Sequence[Row], by: str, condition: Filter) -> dict[str | None, Figures]:
    """The figures that the truth has of each value of a dimension, under a filter."""
    groups: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        if holds(row, condition):
            groups[value_of(row, by)].append(row)
    return {value: _figures_of(group) for value, group in groups.items()}


def _figures_of(rows: Sequence[Row]) -> Figures:
    sums = {name: sum(1 if field is None else int(row[field]) for row in rows) for name, field in _SUMS.items()}
    startups = [row["startup_ms"] for row in rows if row["startup_ms"] is not None]
    ratio = sums["rebuffer_ms"] / sums["watch_ms"] if sums["watch_ms"] else None
    return {**sums, RATIO: ratio, PERCENTILE: nearest_rank(startups, 0.95)}


def _are_equal(observed: Mapping[str | None, Figures], truth: Mapping[str | None, Figures]) -> bool:
    """Whether the same groups have the same figures: sums exactly, a percentile within the error of its histogram."""
    if observed.keys() != truth.keys():
        return False
    errors = {RATIO: 1e-9, PERCENTILE: PERCENTILE_ERROR_MAX}
    return all(
        _is_near(observed[group].get(name), value, errors.get(name, 0))
        for group, figures in truth.items()
        for name, value in figures.items()
    )


def _is_near(observed: float | None, truth: float | None, error: float) -> bool:
    if observed is None or truth is None:
        return observed is truth
    return math.isclose(observed, truth, rel_tol=0, abs_tol=error * abs(truth))


def holds(row: Row, condition: Filter) -> bool:
    """Whether a filter holds of a row of the truth."""
    if "and" in condition:
        return all(holds(row, part) for part in condition["and"])
    if "or" in condition:
        return any(holds(row, part) for part in condition["or"])
    if "not" in condition:
        return not holds(row, condition["not"])
    if "number" in condition:
        number = row[condition["number"]]
        return number is not None and number >= condition["at_least"]
    return value_of(row, condition["dimension"]) in condition["in"]


def value_of(row: Row, dimension: str) -> str | None:
    """A dimension's value as the API has it."""
    value = row.get(_FIELDS.get(dimension, dimension))
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
