"""What operators see of a slot, as JSON, as a page and as metrics: each figure is there, and right."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from deploy.local.broker import Broker
from shared import codec, topics
from shared.partitioning import view_key
from shared.topics import Topic
from tests.integration.parts.brokers import OF_VIEWS
from tests.integration.parts.feed import beacon
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.lookup_slots import T0, VIEW_IDS, LookupSlot, partition, send
from tests.integration.parts.slots import wait_until
from tests.integration.processor.raising_slot import PROGRAM, TOO_LARGE

pytestmark = pytest.mark.integration

GONE, POISON = "view-gone", "view-poison"
ENVIRON = {"VIDEO_VIEWS_FINISH_CLEAN_MS": "100", "VIDEO_VIEWS_LATENESS_MS": "100"}


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return OF_VIEWS


def produce(broker: Broker, view_id: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "message.max.bytes": 2_000_000})
    for value in values:
        producer.produce(topics.BEACONS.name, value, view_key("acme", view_id), partition(view_id))
    assert producer.flush(30) == 0


def encoded(view_id: str, seq: int, event: str, **attrs: object) -> bytes:
    return codec.BEACON.encode(beacon(view_id, seq, event, T0 + 1000 * seq, **attrs))


def state(server: LookupSlot, view_id: str) -> str | None:
    status, body = server.view(view_id)
    return str(body["found"]["state"]) if status == 200 else None


def total(rows: list[dict[str, Any]], *path: str) -> int:
    """The sum of a figure over all partitions."""
    figures: list[Any] = rows
    for name in path:
        figures = [figure.get(name) or 0 if figure else 0 for figure in figures]
    return sum(figures)


def test_every_figure_is_there_and_right(own_broker: Broker, tmp_path: Path) -> None:
    server = LookupSlot(own_broker, tmp_path, 0, program=PROGRAM, **ENVIRON)
    try:
        server.slot.start()
        wait_until(server.slot.is_ready, "the slot works")
        send(own_broker, range(1, 4))
        produce(own_broker, GONE, encoded(GONE, 1, "viewstart"), encoded(GONE, 2, "viewend"))
        wait_until(lambda: state(server, GONE) == "closed", "a view is over")
        produce(own_broker, GONE, encoded(GONE, 3, "heartbeat"))
        produce(own_broker, POISON, b"{garbage", encoded(POISON, 1, "playing", video_title=TOO_LARGE.decode()))
        wait_until(lambda: total(server.partitions(), "rejected", "fold_failed") == 1, "what is to be rejected is")
        wait_until(lambda: total(server.partitions(), "late") == 1, "what is late is counted")
        check_figures(server)
        check_metrics(server)
        check_restored(server)
    finally:
        server.slot.end()


def settled(server: LookupSlot) -> dict[str, Any]:
    """What operators see, of a moment in which all is folded and committed and no timer is due."""
    found: dict[str, Any] = {}

    def is_settled() -> bool:
        status, seen = server.get("/partitions")
        if status != 200:
            return False
        found.update(seen)
        rows = seen["partitions"]
        are_calm = all(row["lag_records"] == 0 and row["timers_due"] == 0 and row["commit_ms"] for row in rows)
        return len(rows) == PARTITIONS and are_calm and total(rows, "tallies", "open_views") == len(VIEW_IDS)

    wait_until(is_settled, "all is folded and committed")
    return found


def check_figures(server: LookupSlot) -> None:
    seen = settled(server)
    rows = seen["partitions"]
    assert [row["partition"] for row in rows] == list(range(PARTITIONS))
    assert all((row["owner"], row["state"]) == ("test/0", "working") for row in rows)
    assert total(rows, "tallies", "open_views") == len(VIEW_IDS)
    assert (total(rows, "rows", "views"), total(rows, "rows", "closed")) == (len(VIEW_IDS), 1)
    assert {row["partition"] for row in rows if row["late"]} == {partition(GONE)}
    assert rows[partition(POISON)]["rejected"] == {"undecodable": 1, "fold_failed": 1}
    # Dropped once, as the row was refused; the record that makes it so is then found alone.
    assert rows[partition(POISON)]["dropped_commits"] == {"application_failed": 1}
    assert total(rows, "dropped_commits", "application_failed") == 1
    assert all(row["quarantined_keys"] == 0 for row in rows)
    assert all(row["timers_due"] == 0 and row["restore_left_records"] == 0 for row in rows)
    assert all(0 < row["commit_ms"] < 60_000 and row["age_ms"] >= 0 for row in rows)
    assert all(row["clock_ms"] > T0 for row in rows)
    (slot,) = seen["slots"]
    assert slot["rss_bytes"] == pytest.approx(resident_bytes(server), rel=0.2)
    # Measured at the end of an interval, which may be later than the records.
    wait_until(
        lambda: (server.get("/partitions")[1]["slots"][0]["cpu_us_per_record"] or 0) > 0,
        "the CPU time a record is known",
    )


def sum_of(metrics: dict[str, float], name: str) -> float:
    return sum(value for key, value in metrics.items() if key.startswith(f"playhead_processor_{name}"))


def gauges_have_followed(server: LookupSlot) -> bool:
    """A slot sets its gauges once a second."""
    metrics = server.metrics()
    open_views, lag = sum_of(metrics, 'tally{name="open_views"'), sum_of(metrics, "lag_records{")
    return (open_views, lag, sum_of(metrics, "timers_due{")) == (len(VIEW_IDS), 0, 0)


def check_metrics(server: LookupSlot) -> None:
    wait_until(lambda: gauges_have_followed(server), "the gauges count all")
    metrics = server.metrics()

    def of(name: str) -> float:
        return sum_of(metrics, name)

    at = f'application="video_views",partition="{partition(POISON)}"'
    assert of('tally{name="open_views"') == len(VIEW_IDS)
    assert of('outputs_total{application="video_views",partition="' + str(partition(GONE)) + '",topic="late"}') == 1
    assert of(f'rejected_total{{{at},reason="undecodable"}}') == 1
    assert of(f'rejected_total{{{at},reason="fold_failed"}}') == 1
    application, number = at.split(",")
    dropped = f'{{{application},code="",outcome="application_failed",{number}}}'
    assert metrics[f"playhead_processor_commits_total{dropped}"] == 1
    for each in range(PARTITIONS):
        one = f'{{partition="{each}"}}'
        for name in ("lag_records", "timers_due", "restore_left_records"):
            assert metrics[f"playhead_processor_{name}{one}"] == 0
        both = f'{{application="video_views",partition="{each}"}}'
        commits = metrics[f"playhead_processor_commit_seconds_count{both}"]
        assert commits > 0
        assert 0 < metrics[f"playhead_processor_commit_seconds_sum{both}"] < 60 * commits
    assert metrics["playhead_processor_rss_bytes"] == pytest.approx(resident_bytes(server), rel=0.2)
    assert metrics["playhead_processor_cpu_seconds_per_record"] > 0


def check_restored(server: LookupSlot) -> None:
    """The slot starts again without its disk: everything it knows comes from the changelog."""
    before = {row["partition"]: row["tallies"] for row in server.partitions()}
    server.slot.kill()
    shutil.rmtree(server.slot.stores_dir())
    server.slot.start()
    rows: list[dict[str, Any]] = []

    def is_back() -> bool:
        rows[:] = server.partitions()
        return len(rows) == PARTITIONS and all(row["state"] == "working" for row in rows)

    wait_until(is_back, "it is back")
    assert {row["partition"]: row["tallies"] for row in rows} == before
    assert all(row["restored_rows"] > 0 and row["restored_rows_per_second"] > 0 for row in rows if row["rows"]["views"])
    metrics = server.metrics()
    restored = [value for name, value in metrics.items() if "restored_rows_total" in name]
    assert sum(restored) == total(rows, "restored_rows") >= len(VIEW_IDS)


def resident_bytes(server: LookupSlot) -> int:
    lines = Path(f"/proc/{server.slot.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024
