"""What Kafka has twice is a duplicate: the truth of a run counts it."""

from collections import Counter

from shared.partitioning import view_key
from tests.chaos.feed import Truth
from tests.chaos.inputs import Stored, with_doubled


def test_a_record_that_kafka_has_twice_is_one_more_duplicate_of_its_view() -> None:
    truth = Truth(rows={("a", "1"): {"duplicate_count": 2}, ("a", "2"): {}}, beacons=9, copies=2, dropped=0, rejected=1)
    sent = Counter({view_key("a", "1"): 7, view_key("a", "2"): 4})
    stands = Stored(Counter({view_key("a", "1"): 8, view_key("a", "2"): 5}), 2)
    more = with_doubled(truth, stands.less(sent, truth.rejected))
    assert more.rows == {("a", "1"): {"duplicate_count": 3}, ("a", "2"): {}}
    assert (more.beacons, more.copies, more.rejected, more.doubled) == (9, 4, 2, 3)
    assert with_doubled(truth, Stored(sent, 1).less(sent, 1)) == truth


def test_a_record_that_kafka_has_lost_is_seen() -> None:
    sent = Counter({view_key("a", "1"): 7})
    assert Stored(Counter({view_key("a", "1"): 6})).less(sent, 0).beacons[view_key("a", "1")] == -1
