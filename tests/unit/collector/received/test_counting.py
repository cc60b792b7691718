"""What is received and rejected is counted by customer and release, within bounds whatever clients send."""

import gzip
from typing import Any

import msgspec
import pytest

from services.collector.http.parsing import Parse
from services.collector.intake.mux import mux
from services.collector.intake.native import parse_beacons as parse_native
from services.collector.intake.post import Post, Rules
from services.collector.intake.sender.customers import Customer, Customers
from services.collector.received.counting import COUNTED_MAX, CUSTOMERS_MAX, Counts, Tallies, Tally
from services.collector.received.releases import Releases
from shared.schemas.live import OTHER, UNKNOWN
from shared.schemas.received import IDLE_MS, RELEASES_MAX
from tests.unit.collector.intake.bodies import mux_body, mux_event, native_beacon, post

LISTED = Rules(customers=Customers({"acme": Customer(), "other": Customer()}))
#: It has no name, so it is rejected.
BROKEN: dict[str, Any] = {"e": ...}


def tallied(tallies: Tallies, given: Post, parse: Parse = mux.parse_beacons, rules: Rules = LISTED) -> Tally:
    return tallies.tally(parse(given, rules), given, rules)


def test_beacons_of_a_release_are_counted_with_what_of_them_is_rejected() -> None:
    body = mux_body(mux_event(pswve="2.4.0"), mux_event(pswve="2.4.0", **BROKEN), mux_event(xid="v-2", pswve="3"))
    assert tallied(Tallies(), post(body)) == {("acme", "2.4.0"): [2, 1], ("acme", "3"): [1, 0]}


def test_a_beacon_that_says_only_what_changed_is_of_its_views_release() -> None:
    tallies = Tallies()
    tallied(tallies, post(mux_body(mux_event(e="viewstart", pswve="2.4.0"))))
    assert tallied(tallies, post(mux_body(mux_event(), mux_event(**BROKEN)))) == {("acme", "2.4.0"): [2, 1]}
    assert tallied(tallies, post(mux_body(mux_event(xid="view-2", **BROKEN)))) == {("acme", ""): [1, 1]}


def test_without_a_players_version_it_is_the_sdks() -> None:
    assert tallied(Tallies(), post(mux_body(mux_event(memve="5.19.0")))) == {("acme", "SDK 5.19.0"): [1, 0]}


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_body_that_cannot_be_read_is_of_the_customer_and_release_that_its_beginning_names(is_packed: bool) -> None:
    body = mux_body(mux_event(pswve="2.4.0"))[:-3]
    given = post(gzip.compress(body) if is_packed else body)
    assert tallied(Tallies(), given) == {("acme", "2.4.0"): [1, 1]}


def test_a_broken_body_of_a_known_view_is_of_its_release() -> None:
    tallies = Tallies()
    tallied(tallies, post(mux_body(mux_event(e="viewstart", pswve="2.4.0"))))
    assert tallied(tallies, post(mux_body(mux_event())[:-3])) == {("acme", "2.4.0"): [1, 1]}


def test_what_names_no_customer_of_the_installation_is_counted_nowhere() -> None:
    assert tallied(Tallies(), post(mux_body(mux_event(ake="stranger")))) == {}
    assert tallied(Tallies(), post(b"{")) == {}
    revoked = Rules(customers=Customers({"acme": Customer(keys=("new",), revoked_keys=("acme",))}))
    assert tallied(Tallies(), post(mux_body(mux_event())), rules=revoked) == {}


def test_a_native_beacon_names_its_release_among_its_attributes() -> None:
    good, bad = native_beacon(attrs={"player_version": "7"}), native_beacon(attrs={"player_version": "7"}, event=...)
    given = post(msgspec.json.encode({"beacons": [good, bad]}), key="acme")
    assert tallied(Tallies(), given, parse_native) == {("acme", "7"): [2, 1]}


@pytest.mark.parametrize("version", [7, None, ["x"], {"a": 1}, "", "a\nb", "\x00", "  "])
def test_what_is_no_version_is_none(version: object) -> None:
    assert tallied(Tallies(), post(mux_body(mux_event(pswve=version), mux_event(pswve=version, **BROKEN)))) == {
        ("acme", ""): [2, 1]
    }


def test_a_release_is_cut_and_views_are_remembered_within_a_bound() -> None:
    ((customer, release),) = tallied(Tallies(), post(mux_body(mux_event(pswve="x" * 500))))
    assert (customer, len(release)) == ("acme", 60)
    releases = Releases(remembered_max=10)
    for number in range(1_000):
        releases.remember(("acme", str(number)), "1")
    assert len(releases._young) + len(releases._old) <= 20
    assert releases.of(("acme", "999")) == "1"
    assert releases.of(("acme", "0")) == ""


def counts_of(*tallies: Tally) -> Counts:
    counts = Counts("c-1", 7)
    for one in tallies:
        counts.add(one)
    return counts


def test_a_report_has_each_customer_and_the_next_one_zeros() -> None:
    counts = counts_of({("acme", "1"): [3, 1], ("acme", ""): [2, 0]}, {("acme", "1"): [1, 1]})
    (first,) = counts.report(5_000)
    assert (first.customer_id, first.collector, first.process, first.bucket_ms) == ("acme", "c-1", 7, 5_000)
    assert (first.received, first.rejected) == (6, 2)
    assert msgspec.to_builtins(first.releases) == {"1": {"received": 4, "rejected": 2}, UNKNOWN: {"received": 2}}
    (second,) = counts.report(10_000)
    assert (second.received, second.releases) == (0, {})
    assert list(counts.report(5_000 + IDLE_MS)) == []


def test_invented_releases_are_added_up_and_the_largest_are_named() -> None:
    invented = {("acme", f"invented-{number}"): [1, 1] for number in range(5 * COUNTED_MAX)}
    (found,) = counts_of({("acme", "real"): [50, 1]}, invented).report(0)
    assert found.received == 50 + 5 * COUNTED_MAX
    assert len(found.releases) == RELEASES_MAX + 1
    assert found.releases["real"].received == 50
    assert sum(one.received for one in found.releases.values()) == found.received
    assert found.releases[OTHER].rejected == 5 * COUNTED_MAX - RELEASES_MAX + 1


@pytest.mark.thorough
def test_invented_customers_are_counted_within_a_bound() -> None:
    counts = counts_of({(f"customer-{number}", ""): [1, 0] for number in range(CUSTOMERS_MAX + 5)})
    assert len(list(counts.report(0))) == CUSTOMERS_MAX
    assert counts.uncounted == 5
    counts.add({(f"later-{number}", ""): [1, 0] for number in range(CUSTOMERS_MAX)})
    # Who came last is known.
    assert {one.customer_id for one in counts.report(5_000)} == {f"later-{number}" for number in range(CUSTOMERS_MAX)}
