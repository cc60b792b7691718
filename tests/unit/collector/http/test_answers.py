"""What refusals say: come back, but not all at once."""

import orjson

from services.collector.admission.retry_later import RetryLater
from services.collector.http.answers import (
    RETRY_SECONDS_MAX,
    RETRY_SECONDS_MIN,
    native_answer,
    native_retry,
    retry_after,
)
from services.collector.intake.post import Outcome, Rejected


def test_those_who_are_refused_together_come_back_apart() -> None:
    seconds = [int(retry_after(RetryLater("unstored"))["Retry-After"]) for _ in range(1_000)]
    assert (min(seconds), max(seconds)) == (RETRY_SECONDS_MIN, RETRY_SECONDS_MAX)
    assert len(set(seconds)) == RETRY_SECONDS_MAX - RETRY_SECONDS_MIN + 1
    assert min(int(retry_after(RetryLater("limited", 60.0))["Retry-After"]) for _ in range(100)) >= 60


def test_a_refused_batch_is_to_be_sent_again_as_a_whole() -> None:
    statuses = {kind: native_retry(RetryLater(kind)).status for kind in ("unstored", "busy", "gone", "limited", "slow")}
    assert statuses == {"unstored": 503, "busy": 503, "gone": 503, "limited": 429, "slow": 408}
    assert all(
        "Retry-After" in native_retry(RetryLater(kind)).headers for kind in ("unstored", "busy", "limited", "slow")
    )


def test_every_beacon_of_a_batch_has_its_answer_in_its_place() -> None:
    rejected = [Rejected(reason="invalid", detail="no", value=b"", place=place, customer_id="acme") for place in (0, 3)]
    answer = native_answer(Outcome(2, rejected))
    assert answer.status == 200
    assert [one["status"] for one in orjson.loads(orjson.dumps(answer.body))["beacons"]] == [
        "rejected",
        "stored",
        "stored",
        "rejected",
    ]
