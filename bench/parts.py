"""The benchmarks of `make bench`, each by its name, with what `make bench` gives it so that all fit half an hour on two cores."""

from typing import Final

#: In the order in which they run.
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "processor": ("bench.processor",),
    "collector": ("bench.collector",),
    "handover": ("bench.handover", "--ways", "kill"),
    "recover": ("bench.recover", "--minutes", "2"),
    "finalizer": ("bench.finalizer",),
    "e2e": ("bench.e2e",),
    "recordings": ("bench.recordings", "--mb", "200"),
}
