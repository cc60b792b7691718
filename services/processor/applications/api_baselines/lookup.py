"""`GET /apis/<host>/baselines?customer=<id>`: for each endpoint of an API the last window, the baseline, and the anomalies."""

from collections.abc import Mapping
from typing import Any

import msgspec

from services.processor.applications.api_baselines.endpoint import Endpoint
from services.processor.engine.application.application import Candidate, Lookup, LookupWrong, Rows, StoreSpec
from shared.api.endpoints import NotAnApi, asked_key
from shared.api.paths import Paths, display_path


class Api(msgspec.Struct, array_like=True):
    """One API: its paths, and the names of its endpoints (`GET /users/{}`)."""

    paths: Paths
    endpoints: list[str] = []
    #: Calls of what is no endpoint (404, 405), and of endpoints beyond the limit.
    unmatched: int = 0
    dropped: int = 0


def endpoint_key(key: bytes, name: str) -> bytes:
    """The row key of an endpoint of the API under `key`."""
    return key + b"\x00" + name.encode()


def season_key(key: bytes, hour: int) -> bytes:
    """The row key of an hour of the week of the endpoint under `key`."""
    return key + b"\x00" + str(hour).encode()


def baselines_lookup(apis: StoreSpec[Api], endpoints: StoreSpec[Endpoint]) -> Lookup:
    """The lookup over these stores."""

    def answer(rows: Rows, key: bytes) -> bytes | None:
        api = rows.get(apis, key)
        if api is None:
            return None
        found = [(name, rows.get(endpoints, endpoint_key(key, name))) for name in api.endpoints]
        customer_id, _, host = key.decode().partition(":")
        return msgspec.json.encode(
            {
                "customer_id": customer_id,
                "host": host,
                "endpoints": [_endpoint(name, endpoint) for name, endpoint in found if endpoint is not None],
                "calls_elsewhere": {"unmatched": api.unmatched, "dropped": api.dropped},
            }
        )

    return Lookup("/apis/{host}/baselines", _candidates_of, answer, frozenset({"customer"}), is_document=True)


def _endpoint(name: str, endpoint: Endpoint) -> dict[str, Any]:
    method, _, template = name.partition(" ")
    last = endpoint.last
    return {
        "method": method,
        "path": display_path(template),
        "state": "learning" if last is None else last.state,
        "last_window": None if last is None else msgspec.structs.asdict(last.figures),
        "usual": None if last is None or last.season is None else last.usual,
        "season": None if last is None else last.season,
        "usual_windows": 0 if last is None else last.usual_windows,
        "anomalies": [
            {"measure": measure} | msgspec.structs.asdict(anomaly) for measure, anomaly in endpoint.anomalies.items()
        ],
    }


def _candidates_of(parts: Mapping[str, str]) -> tuple[Candidate, ...]:
    try:
        key = asked_key(parts)
    except NotAnApi as error:
        raise LookupWrong(str(error)) from error
    return (Candidate(key, key),)
