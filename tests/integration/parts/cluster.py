"""Three small brokers as one cluster: what only replicas can show."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from deploy.local.broker import Broker, new_cluster_id
from deploy.local.ports import free_port
from shared.settings import Settings
from shared.topics import PROFILES, Profile
from tests.integration.parts.proxies import HOST, HangingProxy

NODES: Final = 3
#: Enough for what a test sends; three of them share a machine with everything else.
HEAP_MIB: Final = 256
#: A group has a coordinator again so long after the last one went at the latest, on a busy machine.
COORDINATOR_SECONDS_MAX: Final = 60.0
_NO_COORDINATOR_NOW: Final = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError.REQUEST_TIMED_OUT,
    }
)


class ReplicatedSettings(Settings):
    """An installation as small as its profile, on three brokers."""

    @property
    def profile(self) -> Profile:
        return replace(PROFILES[self.topics_profile], replication_factor=NODES, min_insync_replicas=NODES - 1)


@dataclass(frozen=True)
class Place:
    """Where a broker runs."""

    address: str = "127.0.0.1"
    command: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)


class Cluster:
    """Brokers by their node id, 1 to 3, each with a controller.

    `places` says where each runs: its address, the command that its own is an argument of, and variables of its environment.
    `properties` are further settings of all of them. `proxied`: each broker has a second listener, behind a proxy that can hang.
    Clients that are given `proxied_bootstrap` come through the proxies; the brokers among themselves do not.
    """

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        places: Mapping[int, Place] | None = None,
        *,
        proxied: bool = False,
    ) -> None:
        places = places or dict.fromkeys(range(1, NODES + 1), Place())
        controllers: dict[int, int] = {}
        while len(controllers) < NODES:
            port = free_port()
            if port not in controllers.values():
                controllers[len(controllers) + 1] = port
        voters = ",".join(f"{node}@{places[node].address}:{port}" for node, port in controllers.items())
        replicas, in_sync = str(NODES), str(NODES - 1)
        ports = {node: free_port() for node in controllers}
        listeners: dict[int, dict[str, str]] = {node: {} for node in controllers}
        self.proxies: dict[int, HangingProxy] = {}
        for node in controllers if proxied else ():
            behind = free_port()
            proxy = self.proxies[node] = HangingProxy(behind)
            listeners[node] = _proxied(ports[node], controllers[node], behind, proxy.port)
        cluster_id = new_cluster_id()
        self.brokers = {
            node: Broker(
                folder / f"broker-{node}",
                port=ports[node],
                controller_port=port,
                heap_mib=HEAP_MIB,
                cluster_id=cluster_id,
                address=places[node].address,
                command=places[node].command,
                environ=places[node].environ,
                properties={
                    "node.id": str(node),
                    "controller.quorum.voters": voters,
                    "offsets.topic.replication.factor": replicas,
                    "transaction.state.log.replication.factor": replicas,
                    "transaction.state.log.min.isr": in_sync,
                    # A busy machine makes a controller or a broker silent for seconds: that is no death.
                    "controller.quorum.fetch.timeout.ms": "6000",
                    "controller.quorum.election.timeout.ms": "3000",
                    "broker.session.timeout.ms": "6000",
                    **listeners[node],
                    **(properties or {}),
                },
            )
            for node, port in controllers.items()
        }

    @property
    def bootstrap(self) -> str:
        """What clients are given as `bootstrap.servers`."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def proxied_bootstrap(self) -> str:
        """The same, by way of the proxies."""
        return ",".join(f"{HOST}:{proxy.port}" for proxy in self.proxies.values())

    def coordinator(self, group: str) -> int:
        """The node that coordinates a group of consumers; raises after a minute without one."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        until = time.monotonic() + COORDINATOR_SECONDS_MAX
        while True:
            try:
                node: int = admin.describe_consumer_groups([group])[group].result().coordinator.id
            except KafkaException as error:
                if error.args[0].code() not in _NO_COORDINATOR_NOW or time.monotonic() > until:
                    raise
                time.sleep(0.2)
            else:
                return node

    def __enter__(self) -> Self:
        try:
            for proxy in self.proxies.values():
                proxy.start()
            for broker in self.brokers.values():
                broker.launch()
            for broker in self.brokers.values():
                broker.wait_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        # Nobody reads what they hold any more, and the last of them would wait for the others.
        for broker in self.brokers.values():
            broker.kill()
        for proxy in self.proxies.values():
            proxy.close()


def _proxied(port: int, controller_port: int, behind: int, proxy_port: int) -> dict[str, str]:
    """The listeners of a broker that clients reach by a proxy too: each listener's clients are told addresses of that listener."""
    return {
        "listeners": f"PLAINTEXT://{HOST}:{port},PROXIED://{HOST}:{behind},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port},PROXIED://{HOST}:{proxy_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
