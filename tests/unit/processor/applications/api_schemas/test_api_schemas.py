"""Stories of APIs: learned, published, drifting; each in three weathers."""

from collections.abc import Callable

import msgspec
import pytest

from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import topics
from tests.unit.processor.applications.api_schemas.calls import (
    APPLICATION,
    HOST,
    KEY,
    LEARNING_MS,
    T0,
    bare,
    call,
    changes,
    document,
    drift,
    pipe,
    schema,
)

Drive = Callable[[Application], Driver]

USER = {"id": 1, "email": "a@b.example", "state": "active", "tags": ["x y"], "home": {"city": "new town"}, "born": None}


def learned(drive: Drive, *calls: object) -> Driver:
    """A driver whose API is published, with these calls."""
    driver = drive(APPLICATION)
    pipe(driver, *calls)  # type: ignore[arg-type]
    driver.advance_to(T0 + LEARNING_MS)
    return driver


def test_an_endpoint_is_published_when_its_learning_period_is_over(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, call("/users/1?full=yes", body=USER), call("/users/22", body=USER | {"id": 2.5, "state": "gone"}))
    found = document(driver)
    assert (found["paths"], found["x-learning"]) == ({}, ["GET /users/{id}"])
    assert changes(driver) == []
    driver.advance_to(T0 + LEARNING_MS)
    assert [(one.kind, one.method, one.path, one.host) for one in changes(driver)] == [
        ("learned", "GET", "/users/{id}", HOST)
    ]
    assert bare(schema(driver)) == {
        "type": "object",
        "properties": {
            "id": {"type": "number", "minimum": 1, "maximum": 2.5},
            "email": {
                "type": "string",
                "format": "email",
                "minLength": 11,
                "maxLength": 11,
                "x-personal-data": ["email"],
            },
            "state": {"type": "string", "minLength": 4, "maxLength": 6},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 3, "maxLength": 3}},
            "home": {
                "type": "object",
                "properties": {"city": {"type": "string", "minLength": 8, "maxLength": 8}},
                "required": ["city"],
            },
            "born": {"type": "null"},
        },
        "required": ["born", "email", "home", "id", "state", "tags"],
    }
    operation = document(driver)["paths"]["/users/{id}"]["get"]
    assert [(one["name"], one["in"], one["required"]) for one in operation["parameters"]] == [
        ("id", "path", True),
        ("full", "query", False),
    ]
    assert operation["parameters"][0]["schema"] == {"type": "integer"}
    assert operation["x-seen"] == {"count": 2, "first_ms": T0, "last_ms": T0}


def test_what_some_lack_is_optional_and_what_may_be_null_says_so(drive: Drive) -> None:
    driver = learned(drive, call(body={"a": 1, "b": "x y"}), call(body={"a": None, "b": "y z"}), call(body={"b": "z"}))
    found = schema(driver)
    assert (found["required"], found["properties"]["a"]["type"]) == (["b"], ["null", "integer"])


def test_words_that_recur_are_an_enumeration(drive: Drive) -> None:
    calls = [call(body={"state": "on" if number % 2 else "off", "id": f"w{number}"}) for number in range(14)]
    driver = learned(drive, *calls)
    assert schema(driver)["properties"]["state"]["enum"] == ["off", "on"]
    assert "enum" not in schema(driver)["properties"]["id"]


def test_a_request_is_learned_too(drive: Drive) -> None:
    driver = learned(
        drive,
        call("/users", method="post", status=201, sent={"name": "n"}, body={"id": 1}),
        call("/users", method="post", status=400, sent={}, body={"error": "no name"}),
        call("/users", method="post", status=202, request={"headers": {"X-Key": "v", "Accept": "*/*"}}),
    )
    operation = document(driver)["paths"]["/users"]["post"]
    assert operation["requestBody"]["required"] is False
    assert sorted(operation["responses"]) == ["201", "202", "400"]
    assert [(one["name"], one["in"]) for one in operation["parameters"]] == [("x-key", "header")]


def test_drift_is_reported_once(drive: Drive) -> None:
    driver = learned(drive, *[call(body={"a": 1, "b": {"c": "x y"}})] * 3)
    for _ in range(2):
        pipe(
            driver,
            call(body={"a": "one", "b": {"c": "x y", "d": {"e": 1}}}),
            call(body={"a": 2, "b": {"c": None}}),
            call("/orders", body={}),
            call(status=500, body={"error": "x y"}),
            at_ms=LEARNING_MS,
        )
    pointer = "/response/200/body"
    assert drift(driver) == [
        ("type_change", "GET /users/{id}", f"{pointer}/a"),
        ("new_field", "GET /users/{id}", f"{pointer}/b/d"),
        ("type_change", "GET /users/{id}", f"{pointer}/b/c"),
        ("new_endpoint", "GET /orders", ""),
        ("new_field", "GET /users/{id}", "/response/500"),
    ]
    change = next(one for one in changes(driver) if one.kind == "type_change")
    assert (change.was, change.now, change.at_ms) == (["integer"], ["integer", "string"], T0)


def test_a_field_has_vanished_when_many_calls_in_a_row_lack_it(drive: Drive) -> None:
    driver = learned(drive, *[call(body={"a": 1, "b": 2})] * 2)
    pipe(driver, *[call(body={"a": 1})] * 9, call(body={"a": 1, "b": 2}), *[call(body={"a": 1})] * 9, at_ms=LEARNING_MS)
    assert drift(driver) == []
    pipe(driver, *[call(body={"a": 1})] * 5, at_ms=LEARNING_MS)
    assert drift(driver) == [("vanished_field", "GET /users/{id}", "/response/200/body/b")]


def test_a_new_endpoint_is_learned_before_its_fields_can_drift(drive: Drive) -> None:
    driver = learned(drive, call(body={}))
    pipe(driver, call("/orders", body={"a": 1}), call("/orders", body={"b": 1}), at_ms=LEARNING_MS)
    driver.advance_to(T0 + 2 * LEARNING_MS)
    pipe(driver, call("/orders", body={"c": 1}), at_ms=2 * LEARNING_MS)
    assert drift(driver) == [
        ("new_endpoint", "GET /orders", ""),
        ("new_field", "GET /orders", "/response/200/body/c"),
    ]


def test_words_that_are_data_become_one_endpoint_and_published_ones_stay(drive: Drive) -> None:
    driver = learned(drive, call("/users/me/orders", body=[{"n": 1}]))
    names = [f"name-{letter}" for letter in "abcdefghijklmnopqrstuv"]
    pipe(driver, *[call(f"/users/{name}/orders", body=[{"n": 1}]) for name in names], at_ms=LEARNING_MS)
    pipe(
        driver, call("/users/zoe/orders", body=[{"n": 2}]), call("/users/me/orders", body=[{"n": 2}]), at_ms=LEARNING_MS
    )
    driver.advance_to(T0 + 2 * LEARNING_MS)
    found = document(driver)["paths"]
    assert sorted(found) == ["/users/me/orders", "/users/{id}/orders"]
    assert found["/users/{id}/orders"]["get"]["x-seen"]["count"] == 23
    assert found["/users/me/orders"]["get"]["x-seen"]["count"] == 2


def test_the_first_part_of_a_path_is_never_taken_for_data(drive: Drive) -> None:
    driver = learned(drive, *[call(f"/thing-{letter}", body={}) for letter in "abcdefghijklmnopqrstuvwxyz"])
    assert len(document(driver)["paths"]) == 26


def test_calls_that_found_nothing_make_no_endpoint(drive: Drive) -> None:
    driver = learned(drive, call(body={}), call("/wp-admin", status=404), call("/users/9", status=404, body={"e": 1}))
    found = document(driver)
    assert list(found["paths"]) == ["/users/{id}"]
    assert sorted(found["paths"]["/users/{id}"]["get"]["responses"]) == ["200", "404"]
    assert found["x-calls-elsewhere"] == {"unmatched": 1, "dropped": 0}


@pytest.mark.thorough
def test_endpoints_beyond_the_limit_are_counted(drive: Drive) -> None:
    driver = learned(drive, *[call(f"/thing{number}x", body={}) for number in range(61)])
    found = document(driver)
    assert (len(found["paths"]), found["x-calls-elsewhere"]["dropped"]) == (60, 1)


def test_what_is_not_called_any_more_is_forgotten(drive: Drive) -> None:
    driver = learned(drive, call(body={}), call("/orders", body={}))
    pipe(driver, call("/orders", body={}), at_ms=2 * LEARNING_MS)
    driver.advance_to(T0 + 3_600_000)
    assert list(document(driver)["paths"]) == ["/orders"]
    driver.advance_to(T0 + 2 * LEARNING_MS + 3_600_000)
    (lookup,) = APPLICATION.lookups
    assert driver.look(lookup, KEY) is None


def test_what_is_no_call_is_rejected(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for key, value in ((KEY, b"{}"), (KEY, b"\xff"), (None, b"{}")):
        driver.pipe(topics.API_CALLS, key, value, at_ms=T0)
    assert len(driver.outputs(topics.REJECTED)) == 3


@pytest.mark.parametrize("parts", [{"host": ""}, {"host": "x" * 256}, {"host": "a", "customer": "a b"}])
def test_a_question_that_names_no_api_is_the_askers_mistake(parts: dict[str, str]) -> None:
    (lookup,) = APPLICATION.lookups
    with pytest.raises(ValueError, match=r"has|matches"):
        lookup.candidates_of(parts)


def test_nothing_personal_or_seldom_is_in_the_document(drive: Drive) -> None:
    secret = {
        "firstName": "Ada",
        "phone": "+49 30 1234567",
        "salary_card": "4111 1111 1111 1111",
        "client_ip": "10.1.2.3",
        "nick_name": "adalove",
        "pet": "rexington",
        "byAddress": {"ada@home.example": {"zip_code": 12345}},
    }
    driver = learned(drive, *[call(body=secret | {"pet": f"rexington{number}"}) for number in range(4)])
    found = msgspec.json.encode(document(driver)).decode()
    for value in ("Ada", "1234567", "4111", "10.1.2.3", "adalove", "rexington", "ada@home", "12345"):
        assert value not in found
    properties = schema(driver)["properties"]
    assert {name: one.get("x-personal-data") for name, one in properties.items()} == {
        "firstName": ["name"],
        "phone": ["phone"],
        "salary_card": ["payment card"],
        "client_ip": ["ip address"],
        "nick_name": ["name"],
        "pet": None,
        "byAddress": None,
    }


def test_an_api_is_deleted_with_all_that_was_learned_of_it(drive: Drive) -> None:
    driver = learned(drive, call("/users/1", body=USER))
    assert all(driver.rows.values())
    driver.pipe(topics.API_CALLS, KEY, None, at_ms=T0 + LEARNING_MS + 1)
    assert not any(driver.rows.values())
    assert driver.outputs(topics.REJECTED) == []
