"""When clients send, and what they send again."""

from random import Random

from loadtest.clients.outbox import BACKOFF_BASE_MS, BATCH_MS, CmcdOutbox, MuxOutbox
from loadtest.expected.truth import SimulatedBeacon


def beacon(seq: int, *, urgent: bool = False) -> SimulatedBeacon:
    return SimulatedBeacon(seq, at_ms=seq, event="hb", is_urgent=urgent)


def seqs(beacons: list[SimulatedBeacon]) -> list[int]:
    return [b.seq for b in beacons]


def test_mux_waits_ten_seconds_for_a_batch() -> None:
    outbox = MuxOutbox(Random(1))
    outbox.add([beacon(1), beacon(2)])
    assert outbox.take(BATCH_MS - 1) == []
    assert seqs(outbox.take(BATCH_MS)) == [1, 2]


def test_mux_sends_an_urgent_beacon_at_once_and_what_waited_with_it() -> None:
    outbox = MuxOutbox(Random(1))
    outbox.add([beacon(1), beacon(2, urgent=True)])
    assert seqs(outbox.take(0)) == [1, 2]


def test_mux_has_one_post_in_flight() -> None:
    outbox = MuxOutbox(Random(1))
    outbox.add([beacon(1, urgent=True)])
    outbox.take(0)
    outbox.add([beacon(2, urgent=True)])
    assert outbox.take(1) == []
    outbox.answered(ok=True, now_ms=2)
    assert seqs(outbox.take(2)) == [2]


def test_mux_sends_what_failed_again_together_with_what_is_new() -> None:
    outbox = MuxOutbox(Random(1))
    outbox.add([beacon(1, urgent=True)])
    outbox.take(0)
    outbox.answered(ok=False, now_ms=0)
    outbox.add([beacon(2)])
    assert outbox.take(BACKOFF_BASE_MS - 1) == []
    assert seqs(outbox.take(2 * BACKOFF_BASE_MS)) == [1, 2]


def test_an_urgent_beacon_does_not_wait_for_the_backoff() -> None:
    outbox = MuxOutbox(Random(1))
    outbox.add([beacon(1, urgent=True)])
    outbox.take(0)
    outbox.answered(ok=False, now_ms=0)
    outbox.add([beacon(2, urgent=True)])
    assert seqs(outbox.take(1)) == [1, 2]


def test_when_the_page_crashes_only_what_was_tried_is_still_delivered() -> None:
    outbox = MuxOutbox(Random(1))
    outbox.add([beacon(1, urgent=True)])
    outbox.take(0)
    outbox.add([beacon(2)])
    outbox.answered(ok=False, now_ms=0)
    assert seqs(outbox.take_tried()) == [1]
    assert outbox.take_tried() == []


def test_a_closing_page_sends_everything_queued_also_beside_a_post_in_flight() -> None:
    outbox = MuxOutbox(Random(1))
    outbox.add([beacon(1, urgent=True)])
    outbox.take(0)
    outbox.add([beacon(2)])
    assert seqs(outbox.take_rest()) == [2]


def test_cmcd_sends_whenever_a_batch_is_full_and_not_before() -> None:
    outbox = CmcdOutbox(batch_size=3)
    assert [seqs(outbox.add(beacon(seq))) for seq in range(7)] == [[], [], [0, 1, 2], [], [], [3, 4, 5], []]


def test_cmcd_sends_what_failed_with_the_next_record() -> None:
    outbox = CmcdOutbox(batch_size=1)
    outbox.put_back(outbox.add(beacon(0)))
    assert seqs(outbox.add(beacon(1))) == [0, 1]


def test_a_partial_cmcd_batch_is_lost_with_the_page_but_not_what_was_tried() -> None:
    outbox = CmcdOutbox(batch_size=2)
    outbox.add(beacon(0))
    outbox.put_back(outbox.add(beacon(1)))
    outbox.put_back([])
    assert seqs(outbox.take_tried()) == [0, 1]
    outbox.add(beacon(2))
    assert outbox.take_tried() == []
