"""Calls for stories, as the collector makes them of what is posted, and what a driver made of them."""

import json
from typing import Any

from openapi_spec_validator import OpenAPIV31SpecValidator

from services.collector.intake.api_calls import api_calls
from services.collector.intake.post import ParsedBody, Rules
from services.processor.applications.api_schemas.app import application
from services.processor.applications.api_schemas.settings import SchemaRules
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import api_key
from shared.schemas.apis.call import ApiCall
from shared.schemas.apis.change import ApiChange
from tests.unit.collector.intake.bodies import post

T0 = 1_790_000_000_000
LEARNING_MS = 60_000
HOST = "api.example"
KEY = api_key("acme", HOST)
APPLICATION = application(SchemaRules(learning_ms=LEARNING_MS, kept_ms=3_600_000, endpoints_max=60))


def call(path: str = "/users/1", **fields: Any) -> dict[str, Any]:
    """A call in the native format; `body` is the response's, `sent` the request's."""
    sent: dict[str, Any] = {"method": "GET", "host": HOST, "path": path, "status": 200, "time_ms": T0}
    if "body" in fields:
        sent["response"] = {"body": fields.pop("body")}
    if "sent" in fields:
        sent["request"] = {"body": fields.pop("sent")}
    return sent | fields


def taken(*calls: dict[str, Any]) -> ParsedBody:
    return api_calls.parse_calls(post(json.dumps({"calls": calls}).encode(), key="acme"), Rules())


def canonical(*calls: dict[str, Any]) -> list[ApiCall]:
    found = taken(*calls)
    assert found.rejected == []
    return found.accepted  # type: ignore[return-value]


def pipe(driver: Driver, *calls: dict[str, Any], at_ms: int = 0) -> None:
    """Each comes at this time, ms after T0."""
    for one in canonical(*calls):
        key = api_key(one.customer_id, one.host)
        driver.pipe(topics.API_CALLS, key, codec.API_CALL.encode(one), at_ms=T0 + at_ms)


def changes(driver: Driver) -> list[ApiChange]:
    return [codec.API_CHANGE.decode(output.value) for output in driver.outputs(topics.API_CHANGES)]


def drift(driver: Driver) -> list[tuple[str, str, str]]:
    """Kind, endpoint and pointer of everything but `learned`."""
    return [(one.kind, f"{one.method} {one.path}", one.pointer) for one in changes(driver) if one.kind != "learned"]


def document(driver: Driver) -> dict[str, Any]:
    """The API's document, which is valid OpenAPI 3.1."""
    (lookup,) = APPLICATION.lookups
    ((key, subject),) = lookup.candidates_of({"host": HOST.upper(), "customer": "acme"})
    assert key == KEY
    found = driver.look(lookup, subject)
    assert found is not None
    answer: dict[str, Any] = json.loads(found)
    OpenAPIV31SpecValidator(answer).validate()
    return answer


def schema(driver: Driver, path: str = "/users/{id}", method: str = "get", status: str = "200") -> dict[str, Any]:
    """The schema of an endpoint's response."""
    operation = document(driver)["paths"][path][method]
    found: dict[str, Any] = operation["responses"][status]["content"]["application/json"]["schema"]
    return found


def bare(value: Any) -> Any:
    """A schema without what says how often and when."""
    if isinstance(value, dict):
        return {name: bare(one) for name, one in value.items() if name != "x-seen"}
    return [bare(one) for one in value] if isinstance(value, list) else value
