"""Changes of an incident, with what a test does not say filled in."""

from typing import Any

from shared.schemas.alerts.event import SCHEMA_VERSION, AlertEvent, Evidence, SuspectSlice

AT_MS = 1_795_996_800_000
EVIDENCE = Evidence(
    slice={"cdn": "a"}, value=0.081, usual=0.02, hits=81, of=1_000, seconds=15, at_ms=AT_MS, probability=1e-9,
    season="hour_of_week", usual_of=120_000,
)  # fmt: skip
SUSPECT = SuspectSlice(slice={"cdn": "a"}, explains=0.97, share=0.3, value=0.081)


def event(change: str = "opened", revision: int = 1, **others: Any) -> AlertEvent:
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "customer_id": "acme",
        "incident_id": "0123456789abcdef01234567",
        "revision": revision,
        "change": change,
        "end_reason": "recovered" if change == "closed" else None,
        "at_ms": AT_MS,
        "opened_ms": AT_MS - 600_000,
        "last_ms": AT_MS - 180_000,
        "rule_id": "00000000-0000-0000-0000-000000000001",
        "rule_version": 1,
        "rule_name": "Rebuffering <b>&",
        "metric": "rebuffering",
        "direction": "above",
        "severity": "critical",
        "affected_max": 81,
        "slices": [EVIDENCE],
        "further_slices": 0,
        "suspects": [SUSPECT],
    }
    return AlertEvent(**(fields | others))
