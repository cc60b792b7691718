"""The compared servers: the command and settings of each. Each serves with one thread; all write with acks=all and lz4."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.peers.setup import go_collector, rust_collector
from deploy.local.ports import free_port
from shared.topics import BEACONS

LINGER_MS: Final = 5
#: Names a build of `make compile`, as to any collector. The pass-through takes nothing from it.
COMPILED_DIR: Final = "COLLECTOR_COMPILED_DIR"


@dataclass(frozen=True)
class Server:
    """One server. `topic`: where its records go."""

    title: str
    topic: str
    command: Callable[[], list[str]]
    environ: Callable[[str, int], dict[str, str]]


def _ours(bootstrap: str, port: int) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COLLECTOR_", "PLAYHEAD_"))}
    if COMPILED_DIR in os.environ:
        # Of a build that does not fit nothing is measured.
        kept |= {COMPILED_DIR: os.environ[COMPILED_DIR], "COLLECTOR_COMPILED": "required"}
    return kept | {
        "PLAYHEAD_KAFKA_BOOTSTRAP": bootstrap,
        "COLLECTOR_HOST": "127.0.0.1",
        "COLLECTOR_PORT": str(port),
        "COLLECTOR_ADMIN_HOST": "127.0.0.1",
        "COLLECTOR_ADMIN_PORT": str(free_port()),
        "COLLECTOR_LINGER_MS": str(LINGER_MS),
        # All players of the benchmark have one address.
        "COLLECTOR_ADDRESS_REQUESTS_PER_SECOND": "1000000",
    }


def _peer(topic: str) -> Callable[[str, int], dict[str, str]]:
    def environ(bootstrap: str, port: int) -> dict[str, str]:
        return {"BOOTSTRAP": bootstrap, "PORT": str(port), "TOPIC": topic, "GOMAXPROCS": "1"}

    return environ


def _binary(built: Callable[[], Path]) -> Callable[[], list[str]]:
    return lambda: [str(built())]


ALL: Final = {
    "pass-through": Server(
        "Playhead's server, events produced as they came",
        "pass_through",
        lambda: [sys.executable, "-m", "bench.collector.pass_through", "pass_through"],
        _ours,
    ),
    "full": Server(
        "Playhead's collector, the full intake",
        BEACONS.name,
        lambda: [sys.executable, "-m", "services.collector"],
        _ours,
    ),
    "go": Server("Go, net/http and franz-go", "go", _binary(go_collector), _peer("go")),
    "rust": Server("Rust, axum and rdkafka", "rust", _binary(rust_collector), _peer("rust")),
}
