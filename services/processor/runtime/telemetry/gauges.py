"""Gauges of a slot and of each of its partitions, set about once a second from the status for operators."""

import contextlib
from collections.abc import Mapping

from services.processor.engine.application.application import Application
from services.rim.telemetry.metrics import gauge
from shared import metrics
from shared.schemas.slots import SlotStatus

_OF_PARTITION = (
    metrics.PROCESSOR_LAG_RECORDS,
    metrics.PROCESSOR_CLOCK_MS,
    metrics.PROCESSOR_TIMERS_DUE,
    metrics.PROCESSOR_QUARANTINED_KEYS,
    metrics.PROCESSOR_RESTORE_LEFT_RECORDS,
)


def show(slot: SlotStatus) -> None:
    """Sets them."""
    working = sum(status.state == "working" for status in slot.partitions)
    gauge(metrics.PROCESSOR_PARTITIONS).labels("working").set(working)
    gauge(metrics.PROCESSOR_PARTITIONS).labels("taking").set(len(slot.partitions) - working)
    if slot.rss_bytes is not None:
        gauge(metrics.PROCESSOR_RSS_BYTES).set(slot.rss_bytes)
    if slot.cpu_us_per_record is not None:
        gauge(metrics.PROCESSOR_CPU_SECONDS_PER_RECORD).set(slot.cpu_us_per_record / 1_000_000)
    for status in slot.partitions:
        partition = str(status.partition)
        gauge(metrics.PROCESSOR_LAG_RECORDS).labels(partition).set(status.lag_records or 0)
        gauge(metrics.PROCESSOR_CLOCK_MS).labels(partition).set(status.clock_ms or 0)
        gauge(metrics.PROCESSOR_TIMERS_DUE).labels(partition).set(status.timers_due or 0)
        gauge(metrics.PROCESSOR_QUARANTINED_KEYS).labels(partition).set(status.quarantined_keys or 0)
        gauge(metrics.PROCESSOR_RESTORE_LEFT_RECORDS).labels(partition).set(status.restore_left_records or 0)
        for store, rows in status.rows.items():
            gauge(metrics.PROCESSOR_ROWS).labels(partition, store).set(rows)
        for name, number in status.tallies.items():
            gauge(metrics.PROCESSOR_TALLY).labels(partition, name).set(number)


def show_copies(lags: Mapping[int, int], before: Mapping[int, int]) -> None:
    """Sets those of a standby: how many changelog records each copy lacks. Those of `before` that are gone are forgotten."""
    lag_of = gauge(metrics.PROCESSOR_STANDBY_LAG_RECORDS)
    for partition, lag_records in lags.items():
        lag_of.labels(str(partition)).set(lag_records)
    for partition in before.keys() - lags.keys():
        lag_of.remove(str(partition))


def show_tables(sizes: Mapping[str, tuple[int, int]]) -> None:
    """Sets entries and bytes of each global table, by topic."""
    for topic, (entries, held_bytes) in sizes.items():
        gauge(metrics.PROCESSOR_TABLE_ENTRIES).labels(topic).set(entries)
        gauge(metrics.PROCESSOR_TABLE_BYTES).labels(topic).set(held_bytes)


def forget(application: Application, partition: int) -> None:
    """Another slot reports the partition from now on."""
    labels: list[tuple[metrics.Metric, tuple[str, ...]]] = [(metric, (str(partition),)) for metric in _OF_PARTITION]
    labels += [(metrics.PROCESSOR_ROWS, (str(partition), store.name)) for store in application.stores]
    labels += [(metrics.PROCESSOR_TALLY, (str(partition), name)) for name in application.tallies]
    for metric, values in labels:
        with contextlib.suppress(KeyError):
            gauge(metric).remove(*values)
