"""What is kept of the newest records: the last of each partition, of bounded bytes."""

import pytest

from services.dashboard.arrivals.picture import Read
from services.dashboard.arrivals.reading import BYTES_MAX, RECORDS_MAX, ArrivalReader, Kept
from shared.settings import Settings
from shared.topics import BEACONS, REJECTED


def read(at_ms: int, size: int) -> Read:
    return Read(at_ms, b"acme:v", b"x" * size, {"reason": "invalid"})


def test_records_as_large_as_clients_may_send_take_no_more_than_their_partition_has_room_for() -> None:
    kept = Kept({"beacons": 1_000_000})
    for number in range(200):
        kept.add("beacons", 0, read(number, 100_000))
    assert [one.appended_ms for one in kept.of("beacons")] == list(range(191, 200))
    assert kept.is_cut


def test_large_records_push_out_none_of_another_partition_or_topic() -> None:
    kept = Kept({"beacons": 1_000_000, "rejected": 10_000})
    kept.add("beacons", 1, read(1, 10))
    kept.add("rejected", 0, read(2, 10))
    assert not kept.is_cut
    for number in range(50):
        kept.add("beacons", 0, read(number, 256 * 1024))
    assert [one.appended_ms for one in kept.of("beacons")] == [1, 47, 48, 49]
    assert [one.appended_ms for one in kept.of("rejected")] == [2]


def test_the_newest_record_is_kept_however_large_it_is() -> None:
    kept = Kept({"rejected": 1_000})
    for number in range(3):
        kept.add("rejected", 0, read(number, 900_000))
    assert [one.appended_ms for one in kept.of("rejected")] == [2]


@pytest.mark.thorough
def test_records_of_usual_sizes_are_bounded_by_their_number_alone() -> None:
    kept = Kept({"beacons": BYTES_MAX})
    for number in range(RECORDS_MAX):
        kept.add("beacons", 0, read(number, 1_000))
    assert len(kept.of("beacons")) == RECORDS_MAX
    assert not kept.is_cut


def test_a_topic_has_its_bytes_together_however_many_partitions_it_has() -> None:
    settings = Settings()
    reader = ArrivalReader(settings, bytes_max=6_400)
    for topic in (BEACONS, REJECTED):
        partitions = topic.partitions(settings.profile)
        assert reader.bytes_max[topic.name] == 6_400 // partitions
