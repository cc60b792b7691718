"""The OpenAPI document (3.1), made of the types that handlers take and return. Each API states its operations."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from shared.http.problems import PROBLEM_JSON, Problem

VERSION: Final = "1"
_REF: Final = "#/components/schemas/{name}"
_IN_PATH: Final = re.compile(r"{(\w+)}")
#: What an answer besides 200 means, of any API.
_MEANINGS: Final[Mapping[int, str]] = {
    400: "The request is wrong: `errors` says which parameter or member, and where in it.",
    401: "Neither a session nor a token, or one that has ended.",
    403: "The session or token may not do this.",
    404: "There is no such thing, or none that the asker may see.",
    406: "The answer does not come in any of the types that are accepted.",
    408: "The body does not come in time.",
    409: "It is not in the state that this needs.",
    410: "It is over: expired or deleted.",
    413: "The body is too large.",
    422: "The answer would take more rows or memory than one may.",
    429: "Too many requests, or too many at a time: ask again after `Retry-After` seconds.",
    502: "A part of the installation gives no answer that is one.",
    503: "A part of the installation does not answer: `type` says which.",
    504: "The answer took too long.",
}
#: What a session's changes need beside its cookie.
CSRF_HEADER: Final = "Playhead-CSRF"
#: What an operation of a service may answer that another service passes on.
PASSED_ON: Final = (502, 503, 504)
_READS: Final = frozenset({"get", "head"})
#: What any operation may answer that asks who somebody is.
GUARDED: Final = (401, 403, 404, 429, 503)


@dataclass(frozen=True)
class Operation:
    """One path and method of an API."""

    path: str
    summary: str
    #: A msgspec struct, sent as JSON; None: no content (204).
    answers: type | None
    #: A struct of the query parameters.
    asks: type | None = None
    #: A struct of the JSON body.
    takes: type | None = None
    method: Literal["get", "post", "put", "patch", "delete"] = "get"
    #: Other types in which the answer comes.
    media: tuple[str, ...] = ()
    status: int = 200
    statuses: tuple[int, ...] = GUARDED
    tag: str = "questions"
    #: Anybody may ask: neither token nor session is needed.
    is_public: bool = False

    @property
    def name(self) -> str:
        """The name of the route and of the operation."""
        words = [word.strip("{}") for word in self.path.split("/")[2:]]
        return "-".join([*([self.method] if self.method != "get" else []), *words])


def document(operations: Sequence[Operation], types: Iterable[type] = ()) -> dict[str, Any]:
    """The document of an API, as plain data; `types` are those that only other types' texts name."""
    bodies = [one for operation in operations for one in (operation.answers, operation.takes) if one is not None]
    _, components = msgspec.json.schema_components([Problem, *types, *dict.fromkeys(bodies)], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Playhead",
            "version": VERSION,
            "description": "Quality of experience of video views: any metric, breakdown, filter and range.",
        },
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "playhead_session"},
                "csrf": {
                    "type": "apiKey",
                    "in": "header",
                    "name": CSRF_HEADER,
                    "description": "`csrf` of `/v1/session`: a session's changes need it, a token's do not.",
                },
            },
        },
    }


def merged(first: dict[str, Any], *others: Mapping[str, Any]) -> dict[str, Any]:
    """One document of several APIs; of an operation that two have, the first one's counts.

    Raises `ValueError` where two types have one name.
    """
    found = {**first, "paths": dict(first["paths"])}
    schemas = dict(first["components"]["schemas"])
    for other in others:
        for path, item in other["paths"].items():
            found["paths"][path] = {**item, **found["paths"].get(path, {})}
        theirs = other["components"]["schemas"]
        if clashing := sorted(name for name in theirs.keys() & schemas.keys() if theirs[name] != schemas[name]):
            raise ValueError(f"two types of the API have one name: {', '.join(clashing)}")
        schemas = {**theirs, **schemas}
    found["paths"] = dict(sorted(found["paths"].items()))
    found["components"] = {**first["components"], "schemas": dict(sorted(schemas.items()))}
    return found


def passed_on(described: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a service where another one passes its answers on: each operation may answer `PASSED_ON` too."""
    problems = {
        str(status): {"description": _MEANINGS[status], "content": {PROBLEM_JSON: {"schema": _reference(Problem)}}}
        for status in PASSED_ON
    }
    paths = {
        path: {method: one | {"responses": problems | one["responses"]} for method, one in item.items()}
        for path, item in described["paths"].items()
    }
    return {**described, "paths": paths}


def _operation(one: Operation) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "The answer." if one.answers is not None or one.media else "Done."}
    if one.answers is not None:
        answer["content"] = {"application/json": {"schema": _reference(one.answers)}}
    if one.media:
        answer["content"] = answer.get("content", {}) | {media: {"schema": {"type": "string"}} for media in one.media}
    problem = {PROBLEM_JSON: {"schema": _reference(Problem)}}
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "tags": [one.tag],
        "parameters": [*_path_parameters(one.path), *(_parameters(one.asks) if one.asks is not None else [])],
        "responses": {
            str(one.status): answer,
            **{str(status): {"description": _MEANINGS[status], "content": problem} for status in one.statuses},
        },
    }
    if one.is_public:
        found["security"] = []
    elif one.method not in _READS:
        found["security"] = [{"token": []}, {"session": [], "csrf": []}]
    if one.takes is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _reference(one.takes)}}}
    return found


def _reference(kind: type) -> dict[str, Any]:
    return {"$ref": _REF.format(name=kind.__name__)}


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in _IN_PATH.findall(path)
    ]


def _parameters(asks: type) -> list[dict[str, Any]]:
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
