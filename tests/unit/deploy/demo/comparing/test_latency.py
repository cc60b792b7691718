"""What the demo's lines on latency measure."""

from deploy.demo.comparing.latency import Landed, LiveWaits, latency_lines, published_after

GRACE_MS = 2_000


def a_row(name: str, *, last_append_ms: int, kafka_timestamp_ms: int, landed_at_ms: int) -> Landed:
    return Landed("acme", name, last_append_ms, kafka_timestamp_ms, landed_at_ms)


def test_a_row_is_on_the_page_by_the_first_publishing_after_it_was_written() -> None:
    row = a_row("v", last_append_ms=0, kafka_timestamp_ms=2_100, landed_at_ms=5_000)
    assert published_after(row, [4_000, 5_000, 9_000]) == 5_000
    assert published_after(row, [4_000, 6_000, 9_000]) == 6_000
    assert published_after(row, [4_000]) is None


def test_the_grace_is_taken_off_where_it_is_known_and_only_there() -> None:
    rows = [
        a_row("closed", last_append_ms=10_000, kafka_timestamp_ms=12_300, landed_at_ms=15_000),
        a_row("fell silent", last_append_ms=10_000, kafka_timestamp_ms=70_000, landed_at_ms=80_000),
    ]
    written = {("acme", "closed"): 12_800, ("acme", "fell silent"): 71_000}
    lines = latency_lines(rows, {90_000, 16_000}, {("acme", "closed")}, GRACE_MS, [400, 100], written_ms=written)
    assert {line.name: line.observed for line in lines} == {
        "beacon to live number, p50 / p99": "0.10 s / 0.40 s",
        "closed view to row, minus 2 s, p50 / p99": "0.30 s / 0.30 s",
        "closed view to page's figures, minus 2 s, p50 / p99": "0.80 s / 0.80 s",
        "row to page's figures, p50 / p99": "0.50 s / 1.00 s",
        "row to rollups, p50 / p99": "3.70 s / 20.00 s",
    }


def test_what_was_never_seen_to_be_published_has_no_figure() -> None:
    rows = [a_row("v", last_append_ms=10_000, kafka_timestamp_ms=12_300, landed_at_ms=15_000)]
    assert [line.observed for line in latency_lines(rows, set(), set(), GRACE_MS, [], written_ms={})] == [""] * 5


def test_a_beacon_waits_for_the_first_gauge_that_counts_it_whichever_was_read_first() -> None:
    waits = LiveWaits()
    waits.gauge(3, "acme", 10_000, 15_100)
    for append_ms in (10_000, 14_999, 15_000, 26_000):
        waits.beacon(3, "acme", append_ms)
    # Of other partitions and customers.
    waits.gauge(4, "acme", 25_000, 30_000)
    waits.gauge(3, "other", 25_000, 30_000)
    assert sorted(waits.waits_ms()) == [101, 5_100]
    # A partition that stood still: its next gauge counts what came meanwhile.
    waits.gauge(3, "acme", 20_000, 25_050)
    assert sorted(waits.waits_ms()) == [101, 5_100, 10_050]
    assert LiveWaits().waits_ms() == []
