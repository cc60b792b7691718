"""The benchmarks of `make bench` by name, with arguments so that all of them take half an hour on two cores."""

from typing import Final

#: In the order in which they run.
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "processor": ("bench.processor",),
    "fold": ("bench.fold", "--compiled", ".local/compiled"),
    "collector": ("bench.collector",),
    "hostile": ("bench.collector.beside_hostile",),
    "handover": ("bench.handover",),
    "recover": ("bench.recover", "--minutes", "2"),
    "finalizer": ("bench.finalizer",),
    "hot-rows": ("bench.hot_rows",),
    "query": ("bench.query", "--clickhouse", "--postgres"),
    "page": ("bench.query.page",),
    "suspects": ("bench.suspects",),
    "e2e": ("bench.e2e",),
    "alerts": ("bench.alerts", "--environments", "1"),
    "alert-rules": ("bench.alert_rules",),
    "recordings": ("bench.recordings", "--mb", "200"),
}
