"""The OpenAPI document, made of the types that the handlers take and return."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from services.query.core.filters import Filter
from services.query.core.question import AnyAsked
from shared.problems import PROBLEM_JSON, Problem

VERSION: Final = "1"
_REF: Final = "#/components/schemas/{name}"
#: What a question may be answered besides 200.
_PROBLEMS: Final[Mapping[int, str]] = {
    400: "The question is wrong: `errors` says which parameter, and where in the filter.",
    401: "No bearer token, or an unknown one.",
    404: "A customer that the token may not see.",
    422: "The question would take more rows or memory than one may.",
    429: "The caller has too many questions under way.",
    503: "Postgres or the warehouse does not answer.",
    504: "The question took too long.",
}


@dataclass(frozen=True)
class Operation:
    """One path of the API."""

    path: str
    summary: str
    answers: type
    asks: type[AnyAsked] | None = None

    @property
    def name(self) -> str:
        """Of the route and the operation."""
        return self.path.rpartition("/")[2]


def document(operations: list[Operation]) -> dict[str, Any]:
    """The document, as plain data."""
    types = [Problem, Filter, *dict.fromkeys(one.answers for one in operations)]
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Playhead",
            "version": VERSION,
            "description": "Quality of experience of video views: any metric, breakdown, filter and range.",
        },
        "security": [{"token": []}],
        "paths": {one.path: {"get": _operation(one)} for one in operations},
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Operation) -> dict[str, Any]:
    found = {"application/json": {"schema": {"$ref": _REF.format(name=one.answers.__name__)}}}
    problem = {PROBLEM_JSON: {"schema": {"$ref": _REF.format(name=Problem.__name__)}}}
    statuses = _PROBLEMS if one.asks is not None else {401: _PROBLEMS[401]}
    return {
        "operationId": one.name,
        "summary": one.summary,
        "parameters": _parameters(one.asks) if one.asks is not None else [],
        "responses": {
            "200": {"description": "The answer.", "content": found},
            **{str(status): {"description": text, "content": problem} for status, text in statuses.items()},
        },
    }


def _parameters(asks: type[AnyAsked]) -> list[dict[str, Any]]:
    _, components = msgspec.json.schema_components([asks], ref_template=_REF)
    schema = components[asks.__name__]
    required = schema.get("required", [])
    listed = []
    for name, of_name in schema["properties"].items():
        described = dict(of_name)
        description = described.pop("description", None)
        parameter = {"name": name, "in": "query", "required": name in required, "schema": described}
        listed.append(parameter | ({"description": description} if description else {}))
    return listed
