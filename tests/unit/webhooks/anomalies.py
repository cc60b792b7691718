"""Revisions of anomalies, as api_baselines writes them."""

from typing import Any

from shared import codec
from shared.schemas.apis.anomaly import ApiAnomaly, Evidence

OPENED_MS = 1_790_000_000_000


def revision(number: int, *, state: Any = "open", **fields: Any) -> bytes:
    """A record of topic `api_anomalies`."""
    evidence = Evidence(
        window_start_ms=OPENED_MS,
        figure="p95",
        direction="above",
        value=9.5,
        usual=1.5,
        score=8.0,
        probability=1e-9,
        calls=40,
        usual_windows=24,
        season="hour_of_week",
    )
    given: dict[str, Any] = {
        "customer_id": "acme",
        "host": "api.example",
        "method": "GET",
        "path": "/users/{id}",
        "measure": "latency",
        "opened_ms": OPENED_MS,
        "end_reason": "usual_again" if state == "closed" else None,
        "last_ms": OPENED_MS + 60_000 * number,
        "window_ms": 60_000,
        "windows": number,
    }
    row = ApiAnomaly(schema_version=1, revision=number, state=state, latest=evidence, worst=evidence, **given | fields)
    return codec.API_ANOMALY.encode(row)
