"""The names of all metrics, each once, with its meaning. Pure data: `services.rim.telemetry.metrics` creates them.

Names follow Prometheus: base units, `_total` for counters. A metric that is not declared here cannot be counted.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Kind = Literal["counter", "gauge", "histogram"]
ServiceName = Literal[
    "collector", "processor", "finalizer", "dashboard", "webhooks", "serving", "query", "notifications"
]

_PREFIX: Final = "playhead_"

#: Upper bounds in seconds for latencies from under a millisecond to the HTTP deadline.
LATENCY_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Metric:
    """One metric: its name, kind, meaning and label names."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()


#: Of every service.
DISK_FREE_BYTES: Final = Metric(
    "playhead_disk_free_bytes", "gauge", "Bytes free on the disk of a folder that the process writes.", ("folder",)
)
DISK_BYTES: Final = Metric("playhead_disk_bytes", "gauge", "Size of that disk in bytes.", ("folder",))
CERTIFICATE_END_SECONDS: Final = Metric(
    "playhead_certificate_end_seconds",
    "gauge",
    "When the first certificate of a file that the process uses runs out, seconds since 1970. If it reads the file at its start "
    "alone, a renewed certificate counts from the next start on.",
    ("file",),
)

COLLECTOR_REQUESTS: Final = Metric(
    "playhead_collector_requests_total", "counter", "Requests answered.", ("route", "status")
)
COLLECTOR_BEACONS_ACCEPTED: Final = Metric(
    "playhead_collector_beacons_accepted_total",
    "counter",
    "Beacons, spans (source otlp) and API calls (api) acknowledged by Kafka.",
    ("source",),
)
COLLECTOR_REJECTED: Final = Metric(
    "playhead_collector_rejected_total", "counter", "Inputs written to topic rejected.", ("reason",)
)
COLLECTOR_REJECTED_DROPPED: Final = Metric(
    "playhead_collector_rejected_dropped_total",
    "counter",
    "Rejected inputs that were not kept, because they exceeded the byte rate of topic rejected.",
    ("reason",),
)
COLLECTOR_UNSTORED: Final = Metric(
    "playhead_collector_unstored_total",
    "counter",
    "Records of requests answered 503: not stored, or not known to be.",
    ("reason",),
)
COLLECTOR_LIMITED: Final = Metric(
    "playhead_collector_limited_total",
    "counter",
    "Beacons, spans, API calls and recordings not taken because their customer was beyond a rate.",
    ("customer",),
)
COLLECTOR_CONNECTIONS: Final = Metric("playhead_collector_connections", "gauge", "Connections of clients.")
COLLECTOR_CONNECTIONS_CLOSED: Final = Metric(
    "playhead_collector_connections_closed_total",
    "counter",
    "Connections given up: slow_head, large_head, unread (answers were not read), "
    "wasteful (reading it took too much CPU time), displaced (waiting, closed for a new one), "
    "refused (all were busy).",
    ("reason",),
)
COLLECTOR_IN_FLIGHT_BYTES: Final = Metric(
    "playhead_collector_in_flight_bytes",
    "gauge",
    "Bytes of bodies received, and of records made of them, not yet answered.",
)
COLLECTOR_CUSTOMERS_RELOADS: Final = Metric(
    "playhead_collector_customers_reloads_total",
    "counter",
    "Readings of a changed customers file or table: ok, or failed (the former customers stay in force).",
    ("outcome",),
)
COLLECTOR_CUSTOMERS_LEFT_OUT: Final = Metric(
    "playhead_collector_customers_left_out",
    "gauge",
    "Customers of the table whose write keys are not in force: it has more than collectors hold, and these have the most.",
)
COLLECTOR_USAGE_REPORTS: Final = Metric(
    "playhead_collector_usage_reports_total",
    "counter",
    "Reports to the customers' database of what customers stored and what limits refused: ok, or failed (sent again).",
    ("outcome",),
)
COLLECTOR_RECEIVED_REPORTS: Final = Metric(
    "playhead_collector_received_reports_total",
    "counter",
    "Reports to topic received of each customer's received and rejected input: ok, or lost (Kafka did not take it).",
    ("outcome",),
)
COLLECTOR_SPOOL_BYTES: Final = Metric(
    "playhead_collector_spool_bytes", "gauge", "Bytes in the spool that are not yet in Kafka."
)
COLLECTOR_SPOOL_AGE_SECONDS: Final = Metric(
    "playhead_collector_spool_age_seconds", "gauge", "Age of the oldest request in the spool; 0 when empty."
)
COLLECTOR_SPOOLED: Final = Metric(
    "playhead_collector_spooled_total",
    "counter",
    "Requests by outcome: written, refused, drained, and drained_overdue of these: later than COLLECTOR_SPOOL_SECONDS_MAX; "
    "unreadable (a place in a segment, which is kept as a file .torn).",
    ("outcome",),
)
COLLECTOR_UPLOADS: Final = Metric(
    "playhead_collector_uploads", "gauge", "Payloads of session recordings that are being received."
)
COLLECTOR_RECORDING_BYTES: Final = Metric(
    "playhead_collector_recording_bytes_total", "counter", "Bytes of session recordings acknowledged by Kafka."
)
COLLECTOR_PRODUCE_SECONDS: Final = Metric(
    "playhead_collector_produce_seconds", "histogram", "From handing a request's records to Kafka to their last ack."
)
COLLECTOR_QUEUE_RECORDS: Final = Metric(
    "playhead_collector_queue_records", "gauge", "Records handed to Kafka and not yet acknowledged."
)

PROCESSOR_RECORDS: Final = Metric(
    "playhead_processor_records_total", "counter", "Records folded and committed.", ("application",)
)
PROCESSOR_REJECTED: Final = Metric(
    "playhead_processor_rejected_total",
    "counter",
    "Records written to topic rejected.",
    ("application", "partition", "reason"),
)
PROCESSOR_QUARANTINED_KEYS: Final = Metric(
    "playhead_processor_quarantined_keys",
    "gauge",
    "Keys whose records are rejected because the application failed on them again and again.",
    ("partition",),
)
PROCESSOR_LEAPS: Final = Metric(
    "playhead_processor_append_time_leaps_total",
    "counter",
    "Records whose append time was far ahead of the present, taken as appended now.",
    ("application", "partition"),
)
PROCESSOR_UNWAITED: Final = Metric(
    "playhead_processor_unwaited_total",
    "counter",
    "Records folded after the wait for another input ran out: a replay may order them differently.",
    ("application",),
)
PROCESSOR_OUTPUTS: Final = Metric(
    "playhead_processor_outputs_total",
    "counter",
    "Records emitted and committed (late ones by topic).",
    ("application", "partition", "topic"),
)
PROCESSOR_COMMITS: Final = Metric(
    "playhead_processor_commits_total",
    "counter",
    "Transactions by outcome; of those refused, by Kafka's code.",
    ("application", "partition", "outcome", "code"),
)
PROCESSOR_COMMIT_SECONDS: Final = Metric(
    "playhead_processor_commit_seconds",
    "histogram",
    "From the cut of a checkpoint to its commit.",
    ("application", "partition"),
)
PROCESSOR_LAG_RECORDS: Final = Metric(
    "playhead_processor_lag_records", "gauge", "Records in the input partition not yet folded.", ("partition",)
)
PROCESSOR_CLOCK_MS: Final = Metric(
    "playhead_processor_clock_ms", "gauge", "The partition's clock, ms since 1970.", ("partition",)
)
PROCESSOR_PARTITIONS: Final = Metric(
    "playhead_processor_partitions", "gauge", "Partitions this slot has, by state.", ("state",)
)
PROCESSOR_ROWS: Final = Metric("playhead_processor_rows", "gauge", "Rows in the store.", ("partition", "store"))
PROCESSOR_TALLY: Final = Metric(
    "playhead_processor_tally", "gauge", "Numbers that the application keeps, as open_views.", ("partition", "name")
)
PROCESSOR_TABLE_ENTRIES: Final = Metric(
    "playhead_processor_table_entries", "gauge", "Entries of a global table that the slot holds.", ("topic",)
)
PROCESSOR_TABLE_BYTES: Final = Metric(
    "playhead_processor_table_bytes", "gauge", "Bytes of their keys and values.", ("topic",)
)
PROCESSOR_TIMERS_DUE: Final = Metric(
    "playhead_processor_timers_due",
    "gauge",
    "Timers that are due and wait for the next checkpoint, 10,000 at most.",
    ("partition",),
)
PROCESSOR_RESTORE_LEFT_RECORDS: Final = Metric(
    "playhead_processor_restore_left_records", "gauge", "Changelog records still to be replayed.", ("partition",)
)
PROCESSOR_STANDBY_LAG_RECORDS: Final = Metric(
    "playhead_processor_standby_lag_records",
    "gauge",
    "Changelog records that the copy of this standby lacks.",
    ("partition",),
)
PROCESSOR_RSS_BYTES: Final = Metric("playhead_processor_rss_bytes", "gauge", "Resident memory of the slot.")
PROCESSOR_CPU_SECONDS_PER_RECORD: Final = Metric(
    "playhead_processor_cpu_seconds_per_record", "gauge", "CPU of the whole slot by record read, over the last second."
)
PROCESSOR_LOOKUPS: Final = Metric(
    "playhead_processor_lookups_total", "counter", "Lookups answered, by where.", ("answered", "status")
)
PROCESSOR_REQUESTS: Final = Metric(
    "playhead_processor_requests_total",
    "counter",
    "Requests of an application's routes answered.",
    ("method", "path", "status"),
)
PROCESSOR_REQUEST_SECONDS: Final = Metric(
    "playhead_processor_request_seconds",
    "histogram",
    "From a request of an application's routes to its answer.",
    ("method", "path"),
)
PROCESSOR_RESTORED_ROWS: Final = Metric(
    "playhead_processor_restored_rows_total",
    "counter",
    "Changelog rows replayed into stores, as they are.",
    ("application", "partition"),
)
PROCESSOR_STORES_DISCARDED: Final = Metric(
    "playhead_processor_stores_discarded_total",
    "counter",
    "Local stores deleted because they were corrupt or too old.",
    ("application",),
)
PROCESSOR_MEDIA: Final = Metric(
    "playhead_processor_media_total",
    "counter",
    "Objects by outcome: stored, gone (Kafka had dropped the records), corrupt, failed and declined (the store "
    "answered 4xx), both to be tried again, and refused (declined for long: its chunks go to topic rejected).",
    ("application", "outcome"),
)
PROCESSOR_MEDIA_BYTES: Final = Metric(
    "playhead_processor_media_bytes_total", "counter", "Bytes of objects stored.", ("application",)
)
PROCESSOR_MEDIA_SECONDS: Final = Metric(
    "playhead_processor_media_seconds", "histogram", "Reading, verifying and storing one object.", ("application",)
)
PROCESSOR_FLUSH_SECONDS: Final = Metric(
    "playhead_processor_flush_seconds", "histogram", "Writing the committed layer to the local store."
)

FINALIZER_BATCHES: Final = Metric("playhead_finalizer_batches_total", "counter", "Micro-batches landed.", ("stream",))
FINALIZER_BATCH_ROWS: Final = Metric(
    "playhead_finalizer_batch_records", "gauge", "Records of the last micro-batch.", ("stream",)
)
FINALIZER_BATCH_AGE_SECONDS: Final = Metric(
    "playhead_finalizer_batch_age_seconds",
    "gauge",
    "Age of the present micro-batch, Spark's part included; 0 between two.",
    ("stream",),
)
FINALIZER_VIEWS: Final = Metric("playhead_finalizer_views_total", "counter", "View revisions read from topic views.")
FINALIZER_RAW_RECORDS: Final = Metric(
    "playhead_finalizer_raw_records_total", "counter", "Records landed as they are, by topic.", ("topic",)
)
FINALIZER_ROWS: Final = Metric(
    "playhead_finalizer_rows_total", "counter", "Rows of applications read, by topic.", ("topic",)
)
FINALIZER_BATCH_SECONDS: Final = Metric(
    "playhead_finalizer_batch_seconds",
    "histogram",
    "Landing one micro-batch, by stage; stage whole is all of it.",
    ("stage", "stream"),
)
FINALIZER_SLICES: Final = Metric(
    "playhead_finalizer_slices_total", "counter", "Hour slices rebuilt and published to serving."
)
FINALIZER_UNPARSED: Final = Metric(
    "playhead_finalizer_unparsed_total",
    "counter",
    "Records of topic views and of applications' topics that cannot be read, by reason.",
    ("reason",),
)
FINALIZER_LAG_RECORDS: Final = Metric(
    "playhead_finalizer_lag_records", "gauge", "Committed offsets not yet landed, by topic.", ("topic",)
)

DASHBOARD_REQUESTS: Final = Metric(
    "playhead_dashboard_requests_total", "counter", "Requests answered.", ("route", "status")
)
DASHBOARD_STREAMS: Final = Metric(
    "playhead_dashboard_streams", "gauge", "Streams of live updates that are open: one a browser."
)
DASHBOARD_LIVE_AGE_SECONDS: Final = Metric(
    "playhead_dashboard_live_age_seconds", "gauge", "Age of the newest live bucket shown."
)
FINALIZER_STALLED_RECORDS: Final = Metric(
    "playhead_finalizer_stalled_records",
    "gauge",
    "Offsets behind an open transaction (log end - last stable offset): for long, a hung producer stops the topic.",
    ("topic",),
)
FINALIZER_MAINTENANCE_FAILURES: Final = Metric(
    "playhead_finalizer_maintenance_failures_total",
    "counter",
    "Rounds of maintenance that a table failed; the next round does it again.",
    ("table",),
)
FINALIZER_MAINTENANCE_SECONDS: Final = Metric(
    "playhead_finalizer_maintenance_seconds", "histogram", "Compaction, retention and vacuum of a table.", ("table",)
)

WEBHOOKS_MESSAGES: Final = Metric(
    "playhead_webhooks_messages_total",
    "counter",
    "Records processed: delivered, dead_letter after its last attempt, undecodable, passed_over (no opening, no closing).",
    ("outcome",),
)
WEBHOOKS_ATTEMPTS: Final = Metric(
    "playhead_webhooks_attempts_total", "counter", "Attempts to deliver, by the answer's class or none.", ("answer",)
)
WEBHOOKS_PENDING: Final = Metric("playhead_webhooks_pending_records", "gauge", "Records read and not yet processed.")

NOTIFICATIONS_CHANGES: Final = Metric(
    "playhead_notifications_changes_total",
    "counter",
    "Changes of incidents read from topic alert_events: new, known (they were landed before), undecodable, refused by Postgres.",
    ("outcome",),
)
NOTIFICATIONS_MESSAGES: Final = Metric(
    "playhead_notifications_messages_total",
    "counter",
    "Attempts to notify a receiver, by its kind: delivered, again (another attempt follows), dead (none does).",
    ("kind", "outcome"),
)

SERVING_RECORDS: Final = Metric(
    "playhead_serving_records_total",
    "counter",
    "Records read from topic views: view, undecodable, invalid.",
    ("outcome",),
)
SERVING_VIEWS: Final = Metric(
    "playhead_serving_views_total",
    "counter",
    "Revisions written to Postgres; others were there already, or are not kept.",
)
SERVING_DELAY_SECONDS: Final = Metric(
    "playhead_serving_delay_seconds", "histogram", "From the append of a row to the commit that brings it to the page."
)
SERVING_TRANSACTION_SECONDS: Final = Metric(
    "playhead_serving_transaction_seconds", "histogram", "One transaction of rows, sums and positions."
)
SERVING_LAG_RECORDS: Final = Metric(
    "playhead_serving_lag_records", "gauge", "Offsets of this process's partitions that it has not landed."
)
SERVING_SUPERSEDED: Final = Metric(
    "playhead_serving_superseded_total",
    "counter",
    "Transactions refused, because another process had moved a position.",
)
SERVING_LIVE_RECORDS: Final = Metric(
    "playhead_serving_live_records_total",
    "counter",
    "Records landed by minute, by topic (live, rejected, received).",
    ("topic",),
)
SERVING_LIVE_AGE_SECONDS: Final = Metric(
    "playhead_serving_live_age_seconds",
    "gauge",
    "Since the newest time that was landed of topic live; 0 before the first.",
)
SERVING_HOT_SLICES: Final = Metric(
    "playhead_serving_hot_slices", "gauge", "Customers' hours for which the page reads sums of views, not the rollups."
)
SERVING_DIFFERENT_SLICES: Final = Metric(
    "playhead_serving_different_slices",
    "gauge",
    "Customers' closed hours whose sums of views differ from the rollups: must be 0.",
)

QUERY_REQUESTS: Final = Metric("playhead_query_requests_total", "counter", "Requests answered.", ("route", "status"))
QUERY_ANSWER_SECONDS: Final = Metric(
    "playhead_query_answer_seconds", "histogram", "From a question to its answer, its wait included.", ("shape",)
)


def declared() -> tuple[Metric, ...]:
    """All metrics of this module, in its order."""
    return tuple(each for each in globals().values() if isinstance(each, Metric))


def of_service(service: ServiceName) -> tuple[Metric, ...]:
    """What a service counts: what bears its name, and what bears no service's."""
    others = tuple(f"{_PREFIX}{name}_" for name in get_args(ServiceName) if name != service)
    return tuple(metric for metric in declared() if not metric.name.startswith(others))
