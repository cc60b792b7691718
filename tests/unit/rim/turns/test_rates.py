"""How often who is known may ask."""

import pytest

from services.rim.turns.rates import BURST_SECONDS, Rates, TooManyRequests


def test_a_caller_has_a_rate_of_requests_and_a_burst_and_others_have_their_own() -> None:
    now = [100.0]
    rates = Rates(2.0, clock=lambda: now[0])
    somebody, another = "person:1", "token:2"

    for _ in range(round(2 * BURST_SECONDS)):
        rates.charge(somebody)
    with pytest.raises(TooManyRequests) as refused:
        rates.charge(somebody)
    assert refused.value.seconds == pytest.approx(0.5)
    rates.charge(another)
    # Who is refused pays nothing.
    now[0] += 0.5
    rates.charge(somebody)
    with pytest.raises(TooManyRequests):
        rates.charge(somebody)
    now[0] += 1_000
    for _ in range(round(2 * BURST_SECONDS)):
        rates.charge(somebody)


def test_callers_that_are_not_heard_of_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.rim.turns.rates._REMEMBERED_MAX", 10)
    now = [0.0]
    rates = Rates(1.0, clock=lambda: now[0])
    for number in range(100):
        now[0] += 10
        rates.charge(f"token:{number}")
    assert len(rates._full_at) <= 11
