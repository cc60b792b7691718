"""Hostile requests through every intake and every fold: `--hypothesis-profile many` sends 10,000, every change fewer."""

from hypothesis import settings

from tests.fuzz.__main__ import APPLICATIONS, fuzzed
from tests.fuzz.pipeline import READERS, ROUTES

CASES = 10_000 if settings().max_examples > 1_000 else 1_000


def test_hostile_requests_raise_nothing_and_grow_nothing_beyond_its_bounds() -> None:
    pipeline = fuzzed(1, CASES)
    assert not pipeline.faults, "\n".join(f"{count}: {fault}" for fault, count in pipeline.faults.most_common())
    # It reached every fold, and most of what it sent was taken.
    assert set(pipeline.calls_most) == set(APPLICATIONS)
    assert len(ROUTES) == 9
    # No request of an hour is an anomaly: `tests/unit/webhooks` has those.
    assert set(pipeline.read) == set(READERS) - {"api_anomalies"}
