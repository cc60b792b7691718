"""What one process takes on: rates by customer, bytes in flight. Time is an argument."""

from services.collector.http.limits import Amount, InFlight, RateLimits
from services.collector.intake.sender.customers import Customer


def test_a_rate_gives_a_burst_and_then_its_rate() -> None:
    limits = RateLimits()
    terms = {"acme": Customer(beacons_per_second=2)}

    def wait(beacons: int, now_seconds: float) -> float:
        return limits.wait_seconds({"acme": Amount(beacons, 0)}, terms, now_seconds)

    assert wait(20, 0.0) == 0
    assert wait(1, 0.0) == 0.5
    assert wait(1, 0.5) == 0
    # A request larger than the bucket passes when the bucket is full, and is paid for afterwards.
    assert wait(100, 100.0) == 0
    assert wait(1, 100.0) == (1 + 80) / 2
    assert wait(1, 140.5) == 0


def test_bytes_count_as_beacons_do_and_a_refused_request_costs_nothing() -> None:
    limits = RateLimits()
    terms = {"acme": Customer(beacons_per_second=1, bytes_per_second=100), "other": Customer()}
    assert limits.wait_seconds({"acme": Amount(1, 1_000), "other": Amount(9, 9)}, terms, 0.0) == 0
    assert limits.wait_seconds({"acme": Amount(1, 500)}, terms, 0.0) > 0
    # Only one beacon was taken from its bucket of ten.
    assert limits.wait_seconds({"acme": Amount(9, 0)}, {"acme": Customer(beacons_per_second=1)}, 0.0) == 0


def test_a_customer_without_limits_has_none() -> None:
    limits = RateLimits()
    assert all(limits.wait_seconds({"a": Amount(10**9, 10**9)}, {"a": Customer()}, 0.0) == 0 for _ in range(3))


def test_a_customer_without_rates_has_the_default_ones() -> None:
    limits = RateLimits(Customer(beacons_per_second=1, cpu_ms_per_second=100))
    terms = {"a": Customer(), "b": Customer(beacons_per_second=100)}
    assert limits.wait_seconds({"a": Amount(20, 0), "b": Amount(20, 0)}, terms, 0.0) == 0
    assert limits.wait_seconds({"a": Amount(1, 0)}, terms, 0.0) == 11
    assert limits.wait_seconds({"b": Amount(1, 0, cpu_ms=2_000)}, terms, 0.0) == 0
    assert limits.wait_seconds({"b": Amount(1, 0)}, terms, 0.0) > 9


def test_bytes_in_flight_are_bounded() -> None:
    in_flight = InFlight(100)
    assert in_flight.take_bytes(60)
    assert not in_flight.take_bytes(41)
    assert in_flight.take_bytes(40)
    in_flight.give_back(60)
    assert in_flight.take_bytes(60)
    assert in_flight.bytes == 100
