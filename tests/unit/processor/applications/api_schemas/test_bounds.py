"""What a client can make an API's rows hold: none comes near what a record takes, and no call is rejected."""

from typing import Any

import msgspec
import pytest

from services.processor.applications.api_baselines.app import application as baselines
from services.processor.applications.api_baselines.endpoint import BaselineRules
from services.processor.applications.api_schemas import endpoint as endpoint_module
from services.processor.applications.api_schemas.endpoint import Drift, Endpoint, learn, publish
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.api.endpoints import CALLS_WITHOUT_API
from shared.api.shapes import SPELLED_COUNT_MIN, merged
from shared.partitioning import api_key
from shared.schemas.apis.call import ApiCall
from shared.topics import REJECTED
from tests.unit.processor.applications.api_schemas.calls import (
    APPLICATION,
    HOST,
    T0,
    call,
    canonical,
)

ROW_BYTES_MAX = 700_000


def pipe(driver: Driver, *calls: ApiCall, at_ms: int = 0) -> None:
    values = [(topics.API_CALLS, api_key("acme", HOST), codec.API_CALL.encode(one), T0 + at_ms) for one in calls]
    driver.pipe_all(values, commit_every=50)


def check(driver: Driver) -> None:
    assert driver.outputs(REJECTED) == []
    assert max(len(row or b"") for _, row in driver.changelog) < ROW_BYTES_MAX


def calls(path: str = "/users", **fields: Any) -> list[ApiCall]:
    return canonical(call(path, **fields))


def learned(endpoint: Endpoint, *some: ApiCall) -> list[Drift]:
    return [drift for one in some for drift in learn(endpoint, one)]


def row_bytes(endpoint: Endpoint) -> int:
    return len(msgspec.msgpack.encode(endpoint))


def letters(number: int) -> str:
    return "".join(chr(97 + number // 26**place % 26) for place in range(4))


@pytest.mark.thorough
def test_names_that_are_ids_are_bounded_and_reported_up_to_the_bound() -> None:
    endpoint = Endpoint(T0, T0, T0, T0)
    learned(endpoint, *calls(body={"a": 1}))
    publish(endpoint)
    drifts = 0
    for number in range(120):
        body = {letters(number * 60 + place) + "x" * 50: 1 for place in range(60)}
        drifts += len(learned(endpoint, *calls(body=body)))
    assert row_bytes(endpoint) < ROW_BYTES_MAX
    assert 500 < drifts < 3_000
    assert endpoint.truncated > 0


@pytest.mark.thorough
def test_enumerations_of_very_many_fields_are_given_up() -> None:
    endpoint = Endpoint(T0, T0, T0, T0)
    for word in range(11):
        body = {letters(group): {letters(name): "w" * 24 + letters(word) for name in range(190)} for group in range(5)}
        (one,) = calls(body=body, sent=body)
        learned(endpoint, one)
    assert row_bytes(endpoint) < ROW_BYTES_MAX
    assert endpoint.shape is not None
    assert endpoint.truncated == 0


def test_a_call_that_teaches_nothing_is_counted_without_a_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    same = calls(body={"items": [{"id": 7, "state": "open"}], "note": None})
    one_by_one = Endpoint(T0, T0, T0, T0)
    learned(one_by_one, *same * SPELLED_COUNT_MIN)
    publish(one_by_one)
    merges: list[object] = []
    monkeypatch.setattr(endpoint_module, "merged", lambda one, other: merges.append(one) or merged(one, other))
    learned(one_by_one, *same * 100)
    assert merges == []
    assert one_by_one.shape is not None
    assert (one_by_one.count, one_by_one.shape.count) == (SPELLED_COUNT_MIN + 100,) * 2
    learned(one_by_one, *calls(body={"items": [{"id": 8}], "note": None}))
    assert len(merges) == 1


@pytest.mark.parametrize("application", [APPLICATION, baselines(BaselineRules())])
def test_long_paths_are_bounded_by_their_bytes(application: Application) -> None:
    driver = Driver(application)
    for number in range(110):
        parts = [chr(97 + place) + "\u20ac" * 94 + f"{number:03d}z" for place in range(20)]
        one = ApiCall(
            schema_version=1,
            customer_id="acme",
            host=HOST,
            method="GET",
            path=parts,
            status=200,
            at_ms=T0,
            source="native",
        )
        pipe(driver, one)
    check(driver)
    # What was there before is still counted.
    pipe(driver, *calls("/" + "/".join(["b"] * 3)))
    check(driver)


def test_parts_that_begin_as_data_are_bounded() -> None:
    driver = Driver(APPLICATION)
    (one,) = calls("/users")
    for number in range(200):
        path = ["users", "{" + "x" * 90 + str(number)]
        pipe(driver, msgspec.structs.replace(one, path=path))
    check(driver)
    assert max(len(row or b"") for _, row in driver.changelog) < 8_000


@pytest.mark.parametrize("application", [APPLICATION, baselines(BaselineRules())])
def test_hosts_that_a_scanner_makes_up_are_counted_and_not_kept(application: Application) -> None:
    driver = Driver(application)
    for number in range(20):
        (one,) = calls("/wp-login.php", status=404 if number % 2 else 405)
        driver.pipe(topics.API_CALLS, api_key("acme", f"{number}.example"), codec.API_CALL.encode(one), at_ms=T0)
    check(driver)
    assert not any(driver.rows.values())
    assert driver.tallies[CALLS_WITHOUT_API] == 20
    pipe(driver, *calls(), *calls("/wp-login.php", status=404))
    assert (driver.rows["apis"], driver.rows["endpoints"], driver.tallies[CALLS_WITHOUT_API]) == (1, 1, 20)
