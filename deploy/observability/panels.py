"""What Grafana shows of the services: panels over metrics in Prometheus, by dashboard. Pure data.

`experience.py` has the panels of what viewers experience, over Postgres.
"""

from typing import Final, Literal, NamedTuple


class Panel(NamedTuple):
    """One panel: its title, unit (a name of Grafana's), what it shows, and each query with its legend."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: Literal["lines", "heat", "number"] = "lines"
    meaning: str = ""


def _rate(metric: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{more}[$__rate_interval]))"


def _quantile(share: float, metric: str, by: str = "", more: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{more}[$__rate_interval])))"


OVERVIEW: Final = (
    Panel("Services that answer", "short", (("sum by (job) (up{job=~'playhead-.*'})", "{{job}}"),), "number"),
    Panel("Alerts that fire", "short", (("count(ALERTS{alertstate='firing'}) or vector(0)", "alerts"),), "number"),
    Panel("Beacons accepted", "cps", (("playhead:accepted:rate5m", "accepted"),)),
    Panel("Records folded", "cps", (("playhead:folded:rate5m", "{{application}}"),)),
    Panel("Requests refused", "percentunit", (("playhead:refused:ratio5m", "5xx"),)),
    Panel("Behind the input", "s", (("playhead:clock_age:seconds", "{{job}}"),)),
    Panel(
        "Records waiting",
        "short",
        (("playhead:lag:records", "{{job}}"), ("playhead_finalizer_lag_records", "{{topic}}")),
    ),
    Panel(
        "Unparsed",
        "percentunit",
        (("playhead:rejected:ratio5m", "rejected"), ("playhead:late:ratio15m", "late, {{application}}")),
    ),
    Panel("Disk free", "percentunit", (("playhead:disk_free:ratio", "{{instance}} {{folder}}"),)),
    Panel("Open views", "short", (("sum(playhead_processor_tally{name='open_views'})", "open"),)),
)
COLLECTOR: Final = (
    Panel(
        "Requests", "reqps", ((_rate("playhead_collector_requests_total", "route, status"), "{{route}} {{status}}"),)
    ),
    Panel("Beacons accepted", "cps", ((_rate("playhead_collector_beacons_accepted_total", "source"), "{{source}}"),)),
    Panel(
        "Kafka's acknowledgement",
        "s",
        (
            (_quantile(0.5, "playhead_collector_produce_seconds"), "p50"),
            (_quantile(0.99, "playhead_collector_produce_seconds"), "p99"),
        ),
    ),
    Panel("Records waiting for Kafka", "short", (("playhead_collector_queue_records", "{{instance}}"),)),
    Panel("Bytes in flight", "bytes", (("playhead_collector_in_flight_bytes", "{{instance}}"),)),
    Panel("Connections", "short", (("playhead_collector_connections", "{{instance}}"),)),
    Panel("Not stored", "cps", ((_rate("playhead_collector_unstored_total", "reason"), "{{reason}}"),)),
    Panel(
        "Rejected",
        "cps",
        (
            (_rate("playhead_collector_rejected_total", "reason"), "{{reason}}"),
            (_rate("playhead_collector_rejected_dropped_total", "reason"), "{{reason}}, not kept"),
        ),
    ),
    Panel(
        "Customers beyond their rate", "cps", ((_rate("playhead_collector_limited_total", "customer"), "{{customer}}"),)
    ),
    Panel(
        "Connections given up", "cps", ((_rate("playhead_collector_connections_closed_total", "reason"), "{{reason}}"),)
    ),
    Panel("Spool", "bytes", (("playhead_collector_spool_bytes", "{{instance}}"),)),
    Panel("Spooled", "cps", ((_rate("playhead_collector_spooled_total", "outcome"), "{{outcome}}"),)),
    Panel(
        "Customers reloaded",
        "cps",
        ((_rate("playhead_collector_customers_reloads_total", "outcome"), "{{outcome}}"),),
    ),
    Panel("Customers whose keys are left out", "short", (("playhead_collector_customers_left_out", "{{instance}}"),)),
    Panel(
        "Received and rejected reported",
        "cps",
        ((_rate("playhead_collector_received_reports_total", "outcome"), "{{outcome}}"),),
    ),
    Panel("Usage reported", "cps", ((_rate("playhead_collector_usage_reports_total", "outcome"), "{{outcome}}"),)),
    Panel("Recordings being received", "short", (("playhead_collector_uploads", "{{instance}}"),)),
    Panel(
        "Recordings stored", "Bps", ((_rate("playhead_collector_recording_bytes_total", "instance"), "{{instance}}"),)
    ),
    Panel("Oldest in the spool", "s", (("playhead_collector_spool_age_seconds", "{{instance}}"),)),
    Panel(
        "CPU",
        "percentunit",
        (("rate(process_cpu_seconds_total{job='playhead-collector'}[$__rate_interval])", "{{instance}}"),),
    ),
)
PROCESSOR: Final = (
    Panel(
        "Records waiting by partition",
        "short",
        (("sum by (partition) (playhead_processor_lag_records)", "{{partition}}"),),
        "heat",
        "one row a partition; a bright row is a partition whose owner is slow or away",
    ),
    Panel("Records folded", "cps", ((_rate("playhead_processor_records_total", "application"), "{{application}}"),)),
    Panel("Commits", "cps", ((_rate("playhead_processor_commits_total", "outcome, code"), "{{outcome}} {{code}}"),)),
    Panel(
        "From cut to commit",
        "s",
        (
            (_quantile(0.5, "playhead_processor_commit_seconds", "application"), "p50 {{application}}"),
            (_quantile(0.99, "playhead_processor_commit_seconds", "application"), "p99 {{application}}"),
        ),
    ),
    Panel("Behind the input", "s", (("playhead:clock_age:seconds", "{{job}}"),)),
    Panel(
        "Partitions", "short", (("sum by (instance, state) (playhead_processor_partitions)", "{{instance}} {{state}}"),)
    ),
    Panel("Left to restore", "short", (("playhead_processor_restore_left_records > 0", "{{partition}}"),)),
    Panel(
        "Rows restored", "cps", ((_rate("playhead_processor_restored_rows_total", "application"), "{{application}}"),)
    ),
    Panel("Standby copies behind", "short", (("playhead_processor_standby_lag_records", "{{partition}}"),)),
    Panel("Rows", "short", (("sum by (store) (playhead_processor_rows)", "{{store}}"),)),
    Panel("Tallies", "short", (("sum by (name) (playhead_processor_tally)", "{{name}}"),)),
    Panel("Outputs", "cps", ((_rate("playhead_processor_outputs_total", "topic"), "{{topic}}"),)),
    Panel(
        "Rejected",
        "cps",
        ((_rate("playhead_processor_rejected_total", "application, reason"), "{{application}} {{reason}}"),),
    ),
    Panel(
        "Lookups",
        "reqps",
        ((_rate("playhead_processor_lookups_total", "answered, status"), "{{answered}} {{status}}"),),
    ),
    Panel(
        "Requests of an application's routes",
        "reqps",
        ((_rate("playhead_processor_requests_total", "method, path, status"), "{{method}} {{path}} {{status}}"),),
    ),
    Panel(
        "Answering a request",
        "s",
        ((_quantile(0.99, "playhead_processor_request_seconds", "method, path"), "p99 {{method}} {{path}}"),),
    ),
    Panel("Memory", "bytes", (("playhead_processor_rss_bytes", "{{instance}}"),)),
    Panel("CPU a record", "s", (("playhead_processor_cpu_seconds_per_record", "{{instance}}"),)),
    Panel("Flushes", "s", ((_quantile(0.99, "playhead_processor_flush_seconds", "instance"), "p99 {{instance}}"),)),
    Panel("Global tables: entries", "short", (("playhead_processor_table_entries", "{{topic}} {{instance}}"),)),
    Panel("Global tables: bytes", "bytes", (("playhead_processor_table_bytes", "{{topic}} {{instance}}"),)),
    Panel("Timers due", "short", (("sum by (partition) (playhead_processor_timers_due)", "{{partition}}"),), "heat"),
    Panel(
        "Media objects",
        "cps",
        ((_rate("playhead_processor_media_total", "application, outcome"), "{{application}} {{outcome}}"),),
    ),
    Panel("Media stored", "Bps", ((_rate("playhead_processor_media_bytes_total", "application"), "{{application}}"),)),
    Panel(
        "Storing a media object",
        "s",
        ((_quantile(0.99, "playhead_processor_media_seconds", "application"), "p99 {{application}}"),),
    ),
    Panel(
        "Disordered or discarded",
        "cps",
        (
            (_rate("playhead_processor_unwaited_total", "application"), "not waited for, {{application}}"),
            (_rate("playhead_processor_append_time_leaps_total", "application"), "stamped ahead, {{application}}"),
            (_rate("playhead_processor_stores_discarded_total", "application"), "stores discarded, {{application}}"),
        ),
    ),
)
FINALIZER: Final = (
    Panel("Records waiting", "short", (("playhead_finalizer_lag_records", "{{topic}}"),)),
    Panel("Behind an open transaction", "short", (("playhead_finalizer_stalled_records", "{{topic}}"),)),
    Panel("Batches", "cps", ((_rate("playhead_finalizer_batches_total", "stream"), "{{stream}}"),)),
    Panel(
        "A batch by stage",
        "s",
        ((_quantile(0.9, "playhead_finalizer_batch_seconds", "stream, stage"), "p90 {{stream}} {{stage}}"),),
    ),
    Panel("Records of the last batch", "short", (("playhead_finalizer_batch_records", "{{stream}}"),)),
    Panel(
        "Views and slices",
        "cps",
        (
            ("rate(playhead_finalizer_views_total[$__rate_interval])", "revisions"),
            ("rate(playhead_finalizer_slices_total[$__rate_interval])", "slices"),
        ),
    ),
    Panel("Raw records", "cps", ((_rate("playhead_finalizer_raw_records_total", "topic"), "{{topic}}"),)),
    Panel("Rows of applications", "cps", ((_rate("playhead_finalizer_rows_total", "topic"), "{{topic}}"),)),
    Panel("Unparsed", "cps", ((_rate("playhead_finalizer_unparsed_total", "reason"), "{{reason}}"),)),
    Panel("Maintenance", "s", ((_quantile(0.9, "playhead_finalizer_maintenance_seconds", "table"), "p90 {{table}}"),)),
    Panel("Hot rows: append to page", "s", ((_quantile(0.99, "playhead_serving_delay_seconds"), "p99"),)),
    Panel("Hot rows: transactions", "s", ((_quantile(0.99, "playhead_serving_transaction_seconds"), "p99"),)),
    Panel("Hot rows: records", "cps", ((_rate("playhead_serving_records_total", "outcome"), "{{outcome}}"),)),
    Panel(
        "Hot rows: revisions written, transactions refused",
        "cps",
        (
            (_rate("playhead_serving_views_total", "job"), "written"),
            (_rate("playhead_serving_superseded_total", "job"), "refused"),
        ),
    ),
    Panel("Hot rows: lag", "short", (("playhead_serving_lag_records", "{{instance}}"),)),
    Panel("Live minutes: age", "s", (("max(playhead_serving_live_age_seconds)", "newest landed"),)),
    Panel("Live minutes: records", "cps", ((_rate("playhead_serving_live_records_total", "topic"), "{{topic}}"),)),
    Panel(
        "Hot rows: slices",
        "short",
        (
            ("max(playhead_serving_hot_slices)", "hot"),
            ("max(playhead_serving_different_slices)", "closed and different"),
        ),
    ),
    Panel(
        "API: requests", "reqps", ((_rate("playhead_query_requests_total", "route, status"), "{{route}} {{status}}"),)
    ),
    Panel(
        "API: question to answer", "s", ((_quantile(0.95, "playhead_query_answer_seconds", "shape"), "p95 {{shape}}"),)
    ),
    Panel(
        "Page: requests",
        "reqps",
        ((_rate("playhead_dashboard_requests_total", "route, status"), "{{route}} {{status}}"),),
    ),
    Panel("Page: listeners", "short", (("playhead_dashboard_streams", "{{instance}}"),)),
    Panel("Webhooks", "cps", ((_rate("playhead_webhooks_messages_total", "outcome"), "{{outcome}}"),)),
    Panel("Webhooks: attempts", "cps", ((_rate("playhead_webhooks_attempts_total", "answer"), "{{answer}}"),)),
    Panel("Webhooks in hand", "short", (("playhead_webhooks_pending_records", "{{instance}}"),)),
    Panel(
        "Notifications",
        "cps",
        ((_rate("playhead_notifications_messages_total", "kind, outcome"), "{{kind}} {{outcome}}"),),
    ),
    Panel("Incidents: changes", "cps", ((_rate("playhead_notifications_changes_total", "outcome"), "{{outcome}}"),)),
    Panel("Page: age of the newest bucket", "s", (("playhead_dashboard_live_age_seconds", "{{instance}}"),)),
)

#: By name: the title and what is on it.
ALL: Final = {
    "playhead-overview": ("Playhead: overview", OVERVIEW),
    "playhead-collector": ("Playhead: collector", COLLECTOR),
    "playhead-processor": ("Playhead: processor", PROCESSOR),
    "playhead-finalizer": ("Playhead: finalizer, hot rows, page and webhooks", FINALIZER),
}
