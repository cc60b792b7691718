"""openapi: the REST API of users as an OpenAPI 3.1 document."""

from functools import cache
from typing import Any, Final

import msgspec

from services.processor.applications.users.fields import (
    ATTRIBUTE_CHARS_MAX,
    ATTRIBUTE_NAME_CHARS_MAX,
    ATTRIBUTES_MAX,
    EMAIL_CHARS_MAX,
    EMAIL_PATTERN,
    NAME_CHARS_MAX,
)
from shared.http.problems import PROBLEM_JSON

#: Users on one page.
PAGE_MAX: Final = 100
PAGE_DEFAULT: Final = 50
#: Printable ASCII, as a header can have it.
IDEMPOTENCY_KEY_PATTERN: Final = r"^[\x21-\x7e]{1,128}$"

_Json = dict[str, Any]

_EMAIL: Final[_Json] = {
    "type": "string",
    "format": "email",
    "maxLength": EMAIL_CHARS_MAX,
    "pattern": EMAIL_PATTERN,
    "description": "Unique among all users; upper and lower case are one.",
}
_NAME: Final[_Json] = {"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX}
_ATTRIBUTE: Final[_Json] = {"type": "string", "maxLength": ATTRIBUTE_CHARS_MAX}
_MS: Final[_Json] = {"type": "integer", "description": "ms since 1970, by the broker's clock"}


def _attributes(value: _Json) -> _Json:
    names = {"minLength": 1, "maxLength": ATTRIBUTE_NAME_CHARS_MAX}
    return {
        "type": "object",
        "propertyNames": names,
        "additionalProperties": value,
        "maxProperties": ATTRIBUTES_MAX,
    }


def _object(properties: _Json, required: list[str]) -> _Json:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_FIELDS: Final[_Json] = {"email": _EMAIL, "name": _NAME, "attributes": _attributes(_ATTRIBUTE)}

_SCHEMAS: Final[_Json] = {
    "Fields": _object(_FIELDS, ["email", "name"]),
    "Changes": _object(
        {
            "email": _EMAIL,
            "name": _NAME,
            "attributes": _attributes({**_ATTRIBUTE, "type": ["string", "null"]}) | {"type": ["object", "null"]},
        },
        [],
    ),
    "User": _object(
        {
            "schema_version": {"type": "integer"},
            "id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            **_FIELDS,
            "version": {"type": "integer", "minimum": 1, "description": "Counts the changes; also the entity tag."},
            "created_ms": _MS,
            "updated_ms": _MS,
        },
        ["schema_version", "id", "email", "name", "attributes", "version", "created_ms", "updated_ms"],
    ),
    "Users": _object(
        {
            "users": {"type": "array", "items": {"$ref": "#/components/schemas/User"}},
            "next_cursor": {"type": ["string", "null"], "description": "null on the last page"},
        },
        ["users", "next_cursor"],
    ),
    "Problem": {
        "type": "object",
        "description": "RFC 9457.",
        "properties": {
            "type": {"type": "string", "format": "uri"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "errors": {
                "type": "array",
                "items": _object(
                    {
                        "detail": {"type": "string"},
                        "pointer": {"type": "string", "description": "into the body: #/email"},
                        "header": {"type": "string"},
                        "parameter": {"type": "string"},
                    },
                    ["detail"],
                ),
            },
        },
        "required": ["type", "title", "status"],
    },
}

_PROBLEMS: Final = {
    "400": "The request cannot be understood.",
    "401": "A bearer token is wanted.",
    "404": "There is no such user.",
    "409": "Another user has the e-mail address.",
    "412": "The user is not in the version that If-Match names.",
    "413": "The body is too large.",
    "415": "The body's type is not known.",
    "422": "Fields are invalid, each named; or the idempotency key was used for another request.",
    "503": "No owner could answer in time. A write may still take effect: the same idempotency key returns the outcome.",
}

_IDEMPOTENCY_KEY: Final[_Json] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same request with the same key is done once, and answered the same as long as outcomes are kept.",
    "schema": {"type": "string", "pattern": IDEMPOTENCY_KEY_PATTERN},
}
_IF_MATCH: Final[_Json] = {
    "name": "If-Match",
    "in": "header",
    "description": "Entity tags; the write is done only when the user has one of them.",
    "schema": {"type": "string"},
}
_ID: Final[_Json] = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def _content(schema: str, media_type: str = "application/json") -> _Json:
    return {media_type: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _problems(*statuses: str) -> _Json:
    answers = {
        status: {"description": _PROBLEMS[status], "content": _content("Problem", PROBLEM_JSON)} for status in statuses
    }
    answers["503"]["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}
    return answers


def _user(description: str) -> _Json:
    tag = {"description": "The version, quoted.", "schema": {"type": "string"}}
    return {"description": description, "headers": {"ETag": tag}, "content": _content("User")}


def _body(schema: str, media_type: str = "application/json") -> _Json:
    return {"required": True, "content": _content(schema, media_type)}


_CURSOR: Final[_Json] = {"name": "cursor", "in": "query", "schema": {"type": "string"}}
_LIMIT: Final[_Json] = {
    "name": "limit",
    "in": "query",
    "schema": {"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT},
}
_BY_EMAIL: Final[_Json] = {
    "name": "email",
    "in": "query",
    "description": "Only the user with this address.",
    "schema": {"type": "string"},
}

_COLLECTION: Final[_Json] = {
    "get": {
        "operationId": "listUsers",
        "summary": "All users, a page at a time; or the one with an e-mail address",
        "parameters": [_CURSOR, _LIMIT, _BY_EMAIL],
        "responses": {
            "200": {"description": "A page.", "content": _content("Users")},
            **_problems("400", "401", "503"),
        },
    },
    "post": {
        "operationId": "createUser",
        "summary": "Make a user",
        "parameters": [_IDEMPOTENCY_KEY],
        "requestBody": _body("Fields"),
        "responses": {
            "201": _user("Made; Location says where."),
            **_problems("400", "401", "409", "413", "415", "422", "503"),
        },
    },
}

_ONE: Final[_Json] = {
    "parameters": [_ID],
    "get": {
        "operationId": "getUser",
        "summary": "A user as it is committed",
        "parameters": [{"name": "If-None-Match", "in": "header", "schema": {"type": "string"}}],
        "responses": {
            "200": _user("The user."),
            "304": {"description": "It has the entity tag of If-None-Match."},
            **_problems("400", "401", "404", "503"),
        },
    },
    "put": {
        "operationId": "replaceUser",
        "summary": "Replace a user's fields",
        "parameters": [_IF_MATCH, _IDEMPOTENCY_KEY],
        "requestBody": _body("Fields"),
        "responses": {
            "200": _user("Replaced."),
            **_problems("400", "401", "404", "409", "412", "413", "415", "422", "503"),
        },
    },
    "patch": {
        "operationId": "patchUser",
        "summary": "Change some of a user's fields (RFC 7396)",
        "parameters": [_IF_MATCH, _IDEMPOTENCY_KEY],
        "requestBody": _body("Changes", "application/merge-patch+json"),
        "responses": {
            "200": _user("Changed."),
            **_problems("400", "401", "404", "409", "412", "413", "415", "422", "503"),
        },
    },
    "delete": {
        "operationId": "deleteUser",
        "summary": "Delete a user; its e-mail address is free then",
        "parameters": [_IF_MATCH, _IDEMPOTENCY_KEY],
        "responses": {"204": {"description": "Deleted."}, **_problems("400", "401", "404", "412", "422", "503")},
    },
}


@cache
def document() -> bytes:
    """The document: JSON."""
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Users",
                "version": "1",
                "description": "Reads see what is committed; a write that was answered is seen by every read after it.",
            },
            "security": [{"token": []}],
            "paths": {
                "/users": _COLLECTION,
                "/users/{id}": _ONE,
                "/openapi.json": {
                    "get": {
                        "operationId": "getOpenapi",
                        "summary": "This document",
                        "responses": {
                            "200": {
                                "description": "OpenAPI 3.1.",
                                "content": {"application/json": {"schema": {"type": "object"}}},
                            }
                        },
                    }
                },
            },
            "components": {
                "schemas": _SCHEMAS,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
        }
    )
