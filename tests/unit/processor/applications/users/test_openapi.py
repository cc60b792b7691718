"""The OpenAPI document is valid, is of the routes that there are, and its schemas are those of what is answered."""

from typing import Any

import jsonschema
import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.unit.processor.applications.users.table import Table

ADA = {"email": "ada@example.org", "name": "Ada", "attributes": {"team": "red"}}


def document() -> Any:
    call = Table("calm").call("GET", "/openapi.json")
    assert call.headers["Content-Type"] == "application/json"
    assert call.reply is not None
    return msgspec.json.decode(call.reply.body)


def test_it_is_valid() -> None:
    OpenAPIV31SpecValidator(document()).validate()


def test_it_has_every_route_and_no_other() -> None:
    described = {
        (method.upper(), path)
        for path, item in document()["paths"].items()
        for method in item
        if method in {"get", "post", "put", "patch", "delete"}
    }
    assert described == {(route.method, route.path) for route in Table("calm").application.routes}


def conforms(value: Any, schema: str) -> bool:
    known = document()["components"]
    wanted = {"$ref": f"#/components/schemas/{schema}", "components": known}
    return bool(jsonschema.Draft202012Validator(wanted).is_valid(value))


def test_what_is_answered_is_what_it_says() -> None:
    table = Table("calm")
    user = table.call("POST", "/users", ADA).answer[1]
    assert conforms(user, "User")
    assert not conforms(user | {"age": 1}, "User")
    assert conforms(table.call("GET", "/users").answer[1], "Users")
    for problem in (table.call("POST", "/users", ADA), table.call("POST", "/users", {}), table.call("GET", "/users/1")):
        assert conforms(problem.answer[1], "Problem")
        assert problem.answer[1]["type"].startswith("urn:")


@pytest.mark.parametrize(
    "body",
    [
        ADA,
        ADA | {"attributes": {}},
        ADA | {"email": "a"},
        ADA | {"email": "a@" + "b" * 64 + ".c"},
        ADA | {"name": ""},
        ADA | {"name": "x" * 201},
        ADA | {"attributes": {"": "a"}},
        ADA | {"attributes": {"a": 1}},
        ADA | {"attributes": {f"a{number}": "x" for number in range(17)}},
        ADA | {"colour": "red"},
        {"email": "ada@example.org"},
    ],
)
def test_a_body_is_taken_exactly_when_its_schema_takes_it(body: dict[str, Any]) -> None:
    status = Table("calm").call("POST", "/users", body).answer[0]
    assert conforms(body, "Fields") is (status == 201)
