"""The benchmarks of `make bench` by name, with arguments so that all of them take three quarters of an hour on two cores."""

from typing import Final

#: In the order in which they run.
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "processor": ("bench.processor",),
    #: Beacons of two clients as the real intake writes them: their figures stand with those of `processor`.
    "mux-beacons": ("bench.processor", "--input", "mux", "--views", "40000", "--in-flight", "20000"),
    "native-beacons": ("bench.processor", "--input", "native", "--views", "40000", "--in-flight", "20000"),
    "fold": ("bench.fold", "--compiled", ".local/compiled"),
    "collector": ("bench.collector",),
    "hostile": ("bench.collector.beside_hostile",),
    "handover": ("bench.handover",),
    "recover": ("bench.state.recover", "--minutes", "2"),
    "finalizer": ("bench.finalizer",),
    "hot-rows": ("bench.state.hot_rows",),
    "query": ("bench.query", "--clickhouse", "--postgres"),
    "layout": ("bench.query.layout",),
    "page": ("bench.query.page",),
    "first-load": ("bench.query.first_load",),
    "suspects": ("bench.suspects",),
    "e2e": ("bench.e2e",),
    "alerts": ("bench.alerts", "--environments", "1"),
    "alert-rules": ("bench.alerts.rules",),
    "recordings": ("bench.recordings", "--mb", "200"),
}
