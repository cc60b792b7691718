"""The part of `api_schemas`: calls of a shop's API, from which its schema is learned; then calls that do not fit it."""

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from deploy.demo.applications.part import Part, Running, line
from deploy.demo.comparing.compare import Line
from services.processor.applications.api_schemas.settings import SchemaRules

HOST: Final = "schemas.demo"
CALLS: Final = 30
_ENDPOINTS: Final = ["GET /users/{id}", "POST /users"]


def play(running: Running) -> Sequence[Line]:
    """Sends calls, waits until their schema is published, sends others, and compares the reports with both."""
    path = f"/apis/{HOST}/openapi.json"
    _send(running, *(_call("GET", f"/users/{number}", 200, _user(number)) for number in range(CALLS)))
    _send(running, *(_call("POST", "/users", 201, {"id": number}) for number in range(CALLS)))
    running.until(lambda: _published(running.look(path)) == _ENDPOINTS)
    learned = running.found(path)
    _send(running, _call("GET", "/users/7", 200, _user(7) | {"id": "seven", "nickname": "S"}))
    drift = [("new_field", "/response/200/body/nickname"), ("type_change", "/response/200/body/id")]
    running.until(lambda: _drift(running) == drift)
    if learned is not None:
        _show(running, learned)
    return [
        line("api_schemas: endpoints published", ", ".join(_published(learned)), ", ".join(_ENDPOINTS)),
        line("api_schemas: calls they were learned from", _calls(learned), 2 * CALLS),
        line("api_schemas: changes in the warehouse", len(_drift(running)), len(drift)),
    ]


def _user(number: int) -> dict[str, Any]:
    return {"id": number, "email": f"user{number}@shop.example", "since": "2026-02-02"}


def _call(method: str, path: str, status: int, body: Any) -> dict[str, Any]:
    call = {"method": method, "host": HOST, "path": path, "status": status, "time_ms": time.time_ns() // 1_000_000}
    return call | {"response": {"body": body}}


def _send(running: Running, *calls: dict[str, Any]) -> None:
    running.post("/v1/api-calls", msgspec.json.encode({"calls": calls}))


def _operations(document: Any) -> dict[str, Any]:
    found = {} if document is None else document["paths"]
    return {f"{method.upper()} {path}": operation for path, item in found.items() for method, operation in item.items()}


def _published(document: Any) -> list[str]:
    return sorted(_operations(document))


def _calls(document: Any) -> int:
    return sum(operation["x-seen"]["count"] for operation in _operations(document).values())


def _drift(running: Running) -> list[tuple[str, str]]:
    rows = running.rows("api_changes", "kind, pointer", f"host = '{HOST}' AND kind <> 'learned'")
    return sorted((row["kind"], row["pointer"]) for row in rows)


def _show(running: Running, document: Any) -> None:
    schema = _operations(document)[_ENDPOINTS[0]]["responses"]["200"]["content"]["application/json"]["schema"]
    fields = [f"{name} {one.get('format') or one['type']}" for name, one in schema["properties"].items()]
    running.say(f"  learned of {_ENDPOINTS[0]}: {', '.join(fields)}")


PART: Final = Part("api_schemas", play, {SchemaRules.variable("learning_ms"): "3000"})
