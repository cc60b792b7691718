"""`GET /apis/<host>/openapi.json?customer=<id>`: an API's schema as learned so far."""

from collections.abc import Mapping

import msgspec

from services.processor.applications.api_schemas.endpoint import Endpoint
from services.processor.applications.api_schemas.openapi import to_openapi
from services.processor.engine.application.application import Candidate, Lookup, LookupWrong, Rows, StoreSpec
from shared.api.endpoints import NotAnApi, asked_key
from shared.api.paths import Paths


class Api(msgspec.Struct, array_like=True):
    """One API: its paths, and the names of its endpoints (`GET /users/{}`). Clock times are the partition's, ms."""

    learns_until_ms: int
    paths: Paths
    endpoints: list[str] = []
    #: Calls of what is no endpoint (404, 405), and of endpoints beyond the limit.
    unmatched: int = 0
    dropped: int = 0


def endpoint_key(key: bytes, name: str) -> bytes:
    """The row key of an endpoint of the API under `key`."""
    return key + b"\x00" + name.encode()


def api_lookup(apis: StoreSpec[Api], endpoints: StoreSpec[Endpoint]) -> Lookup:
    """The lookup over these stores."""

    def answer(rows: Rows, key: bytes) -> bytes | None:
        api = rows.get(apis, key)
        if api is None:
            return None
        found = [(name, rows.get(endpoints, endpoint_key(key, name))) for name in api.endpoints]
        there = [(name, endpoint) for name, endpoint in found if endpoint is not None]
        document = to_openapi(key.decode().partition(":")[2], api.paths, there)
        document["x-calls-elsewhere"] = {"unmatched": api.unmatched, "dropped": api.dropped}
        return msgspec.json.encode(document)

    return Lookup("/apis/{host}/openapi.json", _candidates_of, answer, frozenset({"customer"}), is_document=True)


def _candidates_of(parts: Mapping[str, str]) -> tuple[Candidate, ...]:
    try:
        key = asked_key(parts)
    except NotAnApi as error:
        raise LookupWrong(str(error)) from error
    return (Candidate(key, key),)
