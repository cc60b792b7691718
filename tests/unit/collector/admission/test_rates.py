"""Rates by customer and address. Time is an argument."""

import pytest

from services.collector.admission.known_views import KnownViews
from services.collector.admission.rates import AddressRates, Amount, RateLimits
from services.collector.customers.usage import Refused, Stored, Usage
from services.collector.intake.sender.customers import Customer


def test_a_rate_gives_a_burst_and_then_its_rate() -> None:
    limits = RateLimits()
    terms = {"acme": Customer(beacons_per_second=2)}

    def wait(beacons: int, now_seconds: float) -> float:
        return limits.wait_seconds({"acme": Amount(beacons=beacons)}, terms, now_seconds)

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
    assert limits.wait_seconds({"acme": Amount(1_000, beacons=1), "other": Amount(9, beacons=9)}, terms, 0.0) == 0
    assert limits.wait_seconds({"acme": Amount(500, beacons=1)}, terms, 0.0) > 0
    # Only one beacon was taken from its bucket of ten.
    assert limits.wait_seconds({"acme": Amount(beacons=9)}, {"acme": Customer(beacons_per_second=1)}, 0.0) == 0


def test_a_customer_may_store_so_many_bytes_a_day() -> None:
    limits = RateLimits()
    terms = {"acme": Customer(bytes_per_second=1_000, bytes_per_day=864_000), "other": Customer()}

    def wait(size_bytes: int, now_seconds: float, customer_id: str = "acme") -> float:
        return limits.wait_seconds({customer_id: Amount(size_bytes)}, terms, now_seconds)

    # A day's bytes at its rate a second; then no more than the day's average.
    sent, now = 0, 0.0
    while (waited := wait(10_000, now)) == 0:
        sent, now = sent + 10_000, now + 10.0
    # The last request may take the bucket into debt.
    assert 864_000 <= sent <= 864_000 + 10 * now + 10_000
    assert 0 < waited < 1_000
    assert wait(1, now, "other") == 0
    assert wait(1, now + waited + 0.1) == 0
    # What comes in pieces is taken from the day too.
    now += 2_000
    assert wait(1, now) == 0
    limits.take_bytes("acme", 20_000)
    assert wait(1, now) > 0
    assert limits.debt_seconds("acme", 0, now) > 0
    assert limits.debt_seconds("acme", 20_000, now) == 0


@pytest.mark.parametrize("seconds", [0.0, 30 * 86_400.0])
def test_a_customer_whose_day_grows_has_the_room_that_it_has_not_taken(seconds: float) -> None:
    """Where nothing is reported, as with a file of customers: what it stored long ago is not of this day."""
    limits = RateLimits()

    def wait(size_bytes: int, bytes_per_day: int, now_seconds: float) -> float:
        return limits.wait_seconds(
            {"acme": Amount(size_bytes)}, {"acme": Customer(bytes_per_day=bytes_per_day)}, now_seconds
        )

    for day in range(int(seconds // 86_400) + 1):
        assert wait(86_400, 86_400, day * 86_400.0) == 0
    assert wait(1, 86_400, seconds) > 0
    assert wait(86_400, 2 * 86_400, seconds) == 0
    assert wait(1, 2 * 86_400, seconds) > 0
    # A smaller day does not begin again either.
    assert wait(1, 86_400, seconds) > 86_400


def test_what_other_collectors_took_is_taken_from_a_customers_day() -> None:
    usage = Usage()
    limits = RateLimits(Customer(bytes_per_day=86_400), usage)
    terms = {"acme": Customer(), "other": Customer()}

    def wait(size_bytes: int, now_seconds: float, customer_id: str = "acme") -> float:
        return limits.wait_seconds({customer_id: Amount(size_bytes)}, terms, now_seconds)

    assert wait(10_000, 0.0) == 0
    # All collectors together, this one's report included.
    sent = usage.report()
    assert wait(400, 1.0) == 0
    limits.set_stored({"acme": 86_400 + 10.0, "other": 86_000.0}, 2.0)
    assert wait(1, 2.0) == 10 + 400 + 1
    # A customer that this process has not seen yet has no full day either.
    assert wait(1_000, 2.0, "other") == 0
    assert wait(1, 2.0, "other") == 601
    # It drains here as it does there, also when nothing is heard.
    assert wait(1, 2.0 + 411) == 0
    assert {customer: stored.bytes for customer, stored in sent.stored.items()} == {"acme": 10_000}
    usage.settle()
    assert {customer: stored.bytes for customer, stored in usage.report().stored.items()} == {
        "acme": 401,
        "other": 1_000,
    }


def test_a_refused_request_counts_under_each_limit_that_it_is_beyond() -> None:
    usage = Usage()
    limits = RateLimits(Customer(beacons_per_second=1, bytes_per_second=10, spans_per_second=1), usage)
    terms, amounts = {"acme": Customer()}, {"acme": Amount(200, beacons=20)}
    assert limits.wait_seconds(amounts, terms, 0.0) == 0
    for _ in range(2):
        assert limits.wait_seconds(amounts, terms, 1.0) > 0
        limits.count_refused(amounts, terms, 1.0)
    refused = usage.report().refused
    assert refused == {("acme", "beacons_per_second"): Refused(2, 40), ("acme", "bytes_per_second"): Refused(2, 400)}


def test_a_report_that_may_not_have_arrived_is_sent_again_as_it_was() -> None:
    usage = Usage()
    usage.add_stored("acme", 5, 100)
    first = usage.report()
    usage.add_stored("acme", 3, 100)
    assert usage.report() is first
    assert (first.number, first.stored) == (1, {"acme": Stored(5, 100)})
    usage.settle()
    assert (usage.report().number, usage.report().stored) == (2, {"acme": Stored(3, 100)})


def test_a_customer_without_limits_has_none() -> None:
    limits = RateLimits()
    assert all(limits.wait_seconds({"a": Amount(10**9, beacons=10**9)}, {"a": Customer()}, 0.0) == 0 for _ in range(3))


def test_a_customer_without_rates_has_the_default_ones() -> None:
    limits = RateLimits(Customer(beacons_per_second=1, cpu_ms_per_second=100))
    terms = {"a": Customer(), "b": Customer(beacons_per_second=100)}
    assert limits.wait_seconds({"a": Amount(beacons=20), "b": Amount(beacons=20)}, terms, 0.0) == 0
    assert limits.wait_seconds({"a": Amount(beacons=1)}, terms, 0.0) == 11
    assert limits.wait_seconds({"b": Amount(cpu_ms=2_000, beacons=1)}, terms, 0.0) == 0
    assert limits.wait_seconds({"b": Amount(beacons=1)}, terms, 0.0) > 9


@pytest.mark.parametrize(
    ("kind", "rate"),
    [
        ("beacons", "beacons_per_second"),
        ("spans", "spans_per_second"),
        ("calls", "calls_per_second"),
        ("new_views", "new_views_per_second"),
        ("recordings", "recordings_per_minute"),
    ],
)
def test_each_kind_of_input_has_a_rate_of_its_own(kind: str, rate: str) -> None:
    limits = RateLimits()
    a_second = 60.0 if kind == "recordings" else 1.0
    terms = {"acme": Customer(**{rate: 2 * a_second})}
    assert limits.wait_seconds({"acme": Amount(**{kind: 20})}, terms, 0.0) == 0
    assert limits.wait_seconds({"acme": Amount(**{kind: 1})}, terms, 0.0) == pytest.approx(0.5)
    others = {name: 1 for name in ("beacons", "spans", "calls", "new_views", "recordings") if name != kind}
    assert limits.wait_seconds({"acme": Amount(**others)}, terms, 0.0) == 0


def test_views_are_new_until_they_were_remembered_and_views_in_use_stay_known() -> None:
    known = KnownViews(remembered_max=4)
    used = ("acme", "in-use")
    assert known.unknown([used, used]) == known.unknown([used])
    known.remember(known.unknown([used]))
    for number in range(50):
        assert known.unknown([used]) == set()
        assert len(known.unknown([("acme", "in-use"), ("other", "in-use"), ("acme", f"{number}")])) == 2
        known.remember(known.unknown([("acme", f"{number}")]))
    assert len(known._young) + len(known._old) <= 8


def test_an_address_that_stays_within_its_rate_never_waits() -> None:
    requests = AddressRates(10.0, 2.0)
    for tenth in range(1, 100):
        assert requests.wait_seconds("good", tenth / 10) == 0
        requests.take_amount("good", 1, tenth / 10)
    for _ in range(20):
        requests.take_amount("bad", 1, 0.0)
    assert requests.wait_seconds("bad", 0.0) == pytest.approx(0.1)


def test_wasted_time_is_forgiven_at_its_rate_and_the_good_have_none() -> None:
    wasted = AddressRates(250, 2.0)
    assert wasted.wait_seconds("good", 0.0) == 0
    for _ in range(10):
        wasted.take_amount("bad", 100, 0.0)
    # A burst of two seconds' worth is half a second of CPU: half a second is owed.
    assert wasted.wait_seconds("bad", 0.0) == pytest.approx(2.0, abs=0.01)
    assert wasted.wait_seconds("bad", 2.01) == 0
    for number in range(20_000):
        wasted.take_amount(f"many {number}", 100, 3.0)
    assert len(wasted._buckets) <= 8_192
