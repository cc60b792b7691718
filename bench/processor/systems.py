"""The compared systems: the command of each, and the settings that a reader should know."""

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Family = Literal["playhead", "kafka streams", "quix"]
Fold = Literal["reduced", "full"]

_PEERS: Final = Path(__file__).parents[1] / "peers"
_MIB: Final = 1024 * 1024
KAFKA_STREAMS_CACHE_BYTES: Final = 64 * _MIB
#: The row is written one second after the view's end, so that a run need not wait for the default of a minute.
FINISH_CLEAN_MS: Final = 1_000
_BUILD: Final = "compiled" if os.environ.get("PROCESSOR_COMPILED_DIR") else "interpreted"
_JVM: Final = ("-Xms1g", "-Xmx1g", "-XX:+UseParallelGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


@dataclass(frozen=True)
class Peers:
    """Where the peers were set up: folders of jars and classes, an interpreter."""

    jars: Path
    classes: Path
    quix_python: Path


@dataclass(frozen=True)
class Run:
    """What one run is given. `name` is its consumer group, and the first part of its topics' names."""

    name: str
    bootstrap: str
    folder: Path
    peers: Peers

    @property
    def state_dir(self) -> Path:
        """For its local store."""
        return self.folder / "state"

    @property
    def commits_file(self) -> Path:
        """Where it writes how long its commits took, ms, a line each."""
        return self.folder / "commits"


@dataclass(frozen=True)
class System:
    """One system under one configuration."""

    title: str
    family: Family
    commit_ms: int
    command: Callable[[Run], list[str]]
    #: The topics that hold its state, by the run's name.
    changelogs: tuple[str, ...]
    fold: Fold = "reduced"

    @property
    def is_application(self) -> bool:
        """Whether it is the application itself, with the group and topics that it has everywhere."""
        return self.family == "playhead" and self.fold == "full"

    def group(self, name: str) -> str:
        """Its consumer group in a run of this name."""
        return "video_views" if self.is_application else name

    def rows_topic(self, name: str) -> str:
        """Where its rows go."""
        return "views" if self.is_application else f"{name}.rows"

    def other_topics(self, name: str) -> list[str]:
        """Where else it writes."""
        return [f"{name}.live"] if self.fold == "full" and not self.is_application else []

    def changelog_topics(self, name: str) -> list[str]:
        """Where its state goes."""
        return [one.format(name=name) for one in self.changelogs]


def playhead(commit_ms: int, fold: Fold) -> System:
    """The production slot."""

    def command(run: Run) -> list[str]:
        slot = [sys.executable, "-m", "bench.processor.slot", fold]
        return [*slot, run.name, run.bootstrap, str(run.state_dir), str(commit_ms), str(run.commits_file)]

    fold_name = "video_views, the full fold" if fold == "full" else "reduced fold"
    return System(f"Playhead, {fold_name}", "playhead", commit_ms, command, ("{name}.changelog",), fold)


def kafka_streams(commit_ms: int, *, caches: bool, threads: int = 1, fold: Fold = "reduced") -> System:
    """Processor API on persistent RocksDB stores.

    Its full fold makes the rows and live figures of one client alone, in order and without ads (`FullViews.java`): of its five
    stores two are hot and always cached.
    """
    stores = ("views",) if fold == "reduced" else ("views", "dimensions", "deadlines", "live", "cohorts")
    program = "ReducedViews" if fold == "reduced" else "FullViews"

    def command(run: Run) -> list[str]:
        classpath = f"{run.peers.classes}:{run.peers.jars}/*"
        given = [run.name, run.bootstrap, str(run.state_dir), str(commit_ms), str(run.commits_file)]
        cache_bytes = KAFKA_STREAMS_CACHE_BYTES if caches or fold == "full" else 0
        flags = (*_JVM, f"-Dclean.ms={FINISH_CLEAN_MS}")
        return ["java", *flags, "-cp", classpath, program, *given, str(cache_bytes), str(threads)]

    cache = "64 MiB cache" if caches else "no cache"
    more = f", {threads} threads" if threads > 1 else ""
    of_fold = ", the full fold of one client" if fold == "full" else ""
    changelogs = tuple(f"{{name}}-{store}-changelog" for store in stores)
    return System(f"Kafka Streams 4.3.1, {cache}{more}{of_fold}", "kafka streams", commit_ms, command, changelogs, fold)


def quix(commit_ms: int) -> System:
    """Exactly once, on RocksDB."""

    def command(run: Run) -> list[str]:
        script = str(_PEERS / "quix" / "reduced_views.py")
        given = [run.name, run.bootstrap, str(run.state_dir), str(commit_ms), str(run.commits_file)]
        return [str(run.peers.quix_python), script, *given]

    return System("Quix Streams 3.28.1", "quix", commit_ms, command, ("changelog__{name}--beacons--default",))


#: In the order in which they run, so that what else the machine does falls on all alike.
ALL: Final = {
    "playhead-200": playhead(200, "reduced"),
    "kafka-streams-200": kafka_streams(200, caches=False),
    "playhead-100": playhead(100, "reduced"),
    "kafka-streams-100": kafka_streams(100, caches=False),
    "kafka-streams-cache-200": kafka_streams(200, caches=True),
    "kafka-streams-cache-100": kafka_streams(100, caches=True),
    "playhead-full-200": playhead(200, "full"),
    "kafka-streams-full-200": kafka_streams(200, caches=False, fold="full"),
    "quix-200": quix(200),
}

#: What a reader must know of the settings, line by line.
SETTINGS: Final = (
    (
        "Playhead: one slot with its defaults, as `services.processor` starts it; only the commit interval is given."
        f" CPython {platform.python_version()}, the fold {_BUILD}."
    ),
    (
        "Kafka Streams: Processor API, persistent RocksDB store (256 MiB block cache for all, Bloom filters),"
        f" `exactly_once_v2`, one stream thread, record cache off or {KAFKA_STREAMS_CACHE_BYTES // _MIB} MiB, binary state,"
        f" Jackson streaming, lz4, `batch.size` 256 KiB, `max.poll.records` 5000; JVM `{' '.join(_JVM[:3])}`."
    ),
    (
        "Kafka Streams, the full fold: the rules of docs/view.md for mux-embed alone, in order, without ads, as a user would write"
        " them; on the input `mux` each row equals Playhead's in every field but the append times."
    ),
    "Quix Streams: exactly-once, RocksDB with a changelog, values and state as bytes (msgspec decodes the same fields), lz4.",
)
