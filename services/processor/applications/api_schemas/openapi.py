"""An API's schema as OpenAPI 3.1: https://spec.openapis.org/oas/v3.1.1. Pure."""

import re
from collections.abc import Iterable
from typing import Any, Final

from services.processor.applications.api_schemas.endpoint import Endpoint
from shared.api.paths import Paths, data_names, display_path, forms_of
from shared.api.shapes import SPELLED_COUNT_MIN
from shared.schemas.apis.shape import Shape, Text

Json = dict[str, Any]

VERSION: Final = "3.1.1"
#: The methods that a path item has room for.
_METHODS: Final = frozenset({"GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"})
#: How often a word of an enumeration must have occurred on average.
_TIMES_EACH: Final = SPELLED_COUNT_MIN
#: Headers that are HTTP's, not the API's; the specification excludes some from parameters.
_HTTP_HEADERS: Final = re.compile(
    r"accept(-.*)?|age|authorization|cache-control|connection|content-.*|cookie|date|etag|expect|expires|forwarded|host"
    r"|if-.*|keep-alive|last-modified|origin|pragma|referer|sec-.*|server|set-cookie|te|trace(parent|state)|trailer"
    r"|transfer-encoding|upgrade|user-agent|vary|via|x-(forwarded-.*|real-ip|request-id)"
)
_FORM_SCHEMAS: Final[dict[str, Json]] = {
    "integer": {"type": "integer"},
    **{name: {"type": "string", "format": name} for name in ("uuid", "date", "date-time", "email", "ipv4", "ipv6")},
}


def to_openapi(host: str, paths: Paths, endpoints: Iterable[tuple[str, Endpoint]]) -> Json:
    """The document of an API with these endpoints by name (`GET /users/{}`); what is not published yet is only named."""
    items: dict[str, Json] = {}
    learning: list[str] = []
    others: list[str] = []
    calls = 0
    for name, endpoint in sorted(endpoints, key=lambda one: one[0]):
        method, _, template = name.partition(" ")
        path = display_path(template)
        calls += endpoint.count
        if endpoint.known is None:
            learning.append(f"{method} {path}")
        elif method not in _METHODS:
            others.append(f"{method} {path}")
        else:
            items.setdefault(path, {})[method.lower()] = _operation(
                endpoint, _path_parameters(template, forms_of(paths, template))
            )
    return {
        "openapi": VERSION,
        "info": {"title": host, "version": f"{len(items)}.{calls}", "description": "Learned from calls of this API."},
        "servers": [{"url": f"https://{host}"}],
        "paths": items,
        "x-learning": learning,
        "x-other-methods": others,
    }


def schema_of(shape: Shape) -> Json:
    """The JSON Schema (2020-12) of a shape."""
    types = [one for one in shape.types if one != "integer" or "number" not in shape.types]
    schema: Json = {"type": types[0] if len(types) == 1 else types}
    if shape.low is not None and shape.high is not None:
        schema |= {"minimum": _number(shape.low), "maximum": _number(shape.high)}
    if shape.text is not None:
        schema |= _text(shape.text, types)
    if shape.items is not None:
        schema["items"] = schema_of(shape.items)
    if shape.fields:
        schema["properties"] = {name: schema_of(field) for name, field in shape.fields.items()}
        required = [name for name in shape.fields if name not in shape.optional]
        schema |= {"required": required} if required else {}
    if shape.is_map:
        schema["additionalProperties"] = True if shape.values is None else schema_of(shape.values)
    if shape.personal:
        schema["x-personal-data"] = shape.personal
    return schema | {"x-seen": {"count": shape.count, "first_ms": shape.first_ms, "last_ms": shape.last_ms}}


def _path_parameters(template: str, forms: list[list[str]]) -> list[Json]:
    """What a path's data is, by the forms that came at each place."""
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _FORM_SCHEMAS.get(known[0], {"type": "string"}) if len(known) == 1 else {"type": "string"},
        }
        for name, known in zip(data_names(template), forms, strict=True)
    ]


def _operation(endpoint: Endpoint, parameters: list[Json]) -> Json:
    shape = endpoint.shape
    sides = shape.fields if shape is not None else {}
    request, query = sides.get("request"), sides.get("query")
    operation: Json = {
        "parameters": [*parameters, *_parameters(query, "query"), *_parameters(_headers(request), "header")]
    }
    if request is not None and "body" in request.fields:
        operation["requestBody"] = {
            "required": "body" not in request.optional,
            "content": _content(request.fields["body"]),
        }
    answers = sides["response"].fields if "response" in sides else {}
    operation["responses"] = {
        status: _response(answers.get(status), endpoint.statuses[status]) for status in sorted(endpoint.statuses)
    }
    seen = {"count": endpoint.count, "first_ms": endpoint.first_ms, "last_ms": endpoint.last_ms}
    return operation | {"x-seen": seen} | ({"x-truncated": endpoint.truncated} if endpoint.truncated else {})


def _response(shape: Shape | None, count: int) -> Json:
    response: Json = {"description": f"Seen {count} times."}
    headers = _headers(shape)
    if headers is not None and headers.fields:
        named = {
            name: {"schema": {"type": "string"}} for name in headers.fields if _HTTP_HEADERS.fullmatch(name) is None
        }
        response |= {"headers": named} if named else {}
    if shape is not None and "body" in shape.fields:
        response["content"] = _content(shape.fields["body"])
    return response


def _headers(side: Shape | None) -> Shape | None:
    return side.fields.get("headers") if side is not None else None


def _parameters(shape: Shape | None, where: str) -> list[Json]:
    if shape is None:
        return []
    return [
        {"name": name, "in": where, "required": name not in shape.optional, "schema": schema_of(field)}
        for name, field in shape.fields.items()
        if where != "header" or _HTTP_HEADERS.fullmatch(name) is None
    ]


def _content(body: Shape) -> Json:
    return {"application/json": {"schema": schema_of(body)}}


def _text(text: Text, types: list[Any]) -> Json:
    schema: Json = {"minLength": text.length_min, "maxLength": text.length_max}
    if len(text.formats) == 1 and text.formats[0]:
        schema["format"] = text.formats[0]
    is_enumeration = (
        text.words
        and text.words.keys() == text.spelled.keys()
        and sum(text.words.values()) >= _TIMES_EACH * len(text.words)
        and set(types) <= {"string", "null"}
    )
    if is_enumeration:
        schema["enum"] = [*sorted(text.spelled.values()), *([None] if "null" in types else [])]
    return schema


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() else value
