"""A single-node Kafka broker (KRaft) as a child process: for tests and local runs, never for production."""

import os
import shutil
import socket
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.local import class_archives
from deploy.local.paths import KAFKA_JARS, KAFKA_LOG4J
from deploy.local.ports import free_port
from deploy.local.process import Child, ProcessDied

START_SECONDS_MAX: Final = 90.0
STOP_SECONDS_MAX: Final = 30.0
#: Two seconds of a JVM; on a machine with twenty others that is more than a minute.
FORMAT_SECONDS_MAX: Final = 180.0
_ANSWER_SECONDS_MAX: Final = 5.0
HEAP_MIB: Final = 640


#: Small internal topics and one copy of everything suit one machine. Timeouts at the low end let tests see a dead group
#: member soon. A killed broker returns only when its last session has run out; one that gets no CPU for as long is fenced.
#: `message.timestamp.type` is not set here: every topic declares its own. Two settings save CPU time: a broker with nothing to do
#: writes nothing to its own log, and it offers no metrics by JMX, of which each partition has a dozen.
_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{address}:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{address}:{port},CONTROLLER://{address}:{controller_port}
advertised.listeners=PLAINTEXT://{address}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=1000
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.min.heartbeat.interval.ms=200
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=16777216
num.network.threads=2
num.io.threads=4
metadata.max.idle.interval.ms=0
metrics.jmx.exclude=.*
"""
#: A method is compiled when it was called 40 times rather than 200, or 20 times with loops: most of what a short run calls, it
#: calls less often than by default, and what is not compiled takes many times as long.
_COMPILED_SOON: Final = (
    *("-XX:Tier3InvocationThreshold=40", "-XX:Tier3MinInvocationThreshold=20", "-XX:Tier3CompileThreshold=160"),
    # Calls are looked at each 8th time, and loops each 256th time round.
    *("-XX:Tier0InvokeNotifyFreqLog=3", "-XX:Tier3BackEdgeThreshold=6000", "-XX:Tier0BackedgeNotifyFreqLog=8"),
)


class Broker:
    """One broker with its data, settings and log in `folder`.

    The data outlive `stop` and `kill`, so `start` afterwards continues on them, on the same ports.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        controller_port: int | None = None,
        jars: Path = KAFKA_JARS,
        heap_mib: int = HEAP_MIB,
        properties: Mapping[str, str] | None = None,
        cluster_id: str | None = None,
        address: str = "127.0.0.1",
        command: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        java_home: Path | None = None,
    ) -> None:
        """`properties` are further settings of the broker, by name; they replace the settings of this module.

        `cluster_id` is the cluster that it is a part of: 22 characters of base64, as Kafka has them. By default its own.
        `address` is where it listens, `command` what its own command is an argument of, and `environ` is added to ours.
        The Java of `java_home` runs it; by default that of Kafka's archive of classes where it is used, else that of the machine.
        """
        self._own_cluster_id = cluster_id
        self._folder = folder
        self._address = address
        self._more = "".join(f"{name}={value}\n" for name, value in (properties or {}).items())
        self._jars = jars
        self._java_home = java_home
        self._heap_mib = heap_mib
        self.port = port or free_port()
        self._controller_port = controller_port or free_port()
        self._data = folder / "data"
        self._properties = folder / "server.properties"
        self._child = Child(
            "broker",
            [*command, *self._java("kafka.Kafka", str(self._properties))],
            log_file=folder / "broker.log",
            env={**os.environ, **(environ or {})},
        )

    @property
    def bootstrap(self) -> str:
        """What clients are given as `bootstrap.servers`."""
        return f"{self._address}:{self.port}"

    @property
    def log_file(self) -> Path:
        """Where the broker's own output goes."""
        return self._child.log_file

    @property
    def data(self) -> Path:
        """Where its logs lie, a folder a partition."""
        return self._data

    @property
    def child(self) -> Child:
        """The broker's process."""
        return self._child

    @property
    def is_running(self) -> bool:
        """Whether the broker's process runs."""
        return self._child.is_running

    def start(self, seconds: float = START_SECONDS_MAX) -> None:
        """Starts the broker and waits until it answers; the same as `launch` and `wait_ready`."""
        self.launch()
        self.wait_ready(seconds)

    def launch(self) -> None:
        """Starts the broker and does not wait. Raises `ProcessDied` when its data cannot be formatted."""
        self.format()
        self._child.start()

    def format(self) -> None:
        """Writes its settings, and formats its data unless there are any. Raises `ProcessDied` when they cannot be."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(
            # A backslash would begin an escape in a properties file.
            _PROPERTIES.format(
                address=self._address,
                port=self.port,
                controller_port=self._controller_port,
                data=str(self._data).replace("\\", "\\\\"),
            )
            + self._more
        )
        if not (self._data / "meta.properties").exists():
            self._format()

    def wait_ready(self, seconds: float = START_SECONDS_MAX) -> None:
        """Waits until the launched broker answers.

        Raises `ProcessDied` (with the end of its log) when it ends, `DeadlinePassed` when it does not answer in time.
        """
        try:
            self._child.wait_until(self._listens, seconds, f"listening on {self.bootstrap}")
            self._child.wait_until(self._answers, seconds, f"answering on {self.bootstrap}")
        except BaseException:
            # A broker that did not come up in time must not be left running behind its starter's back.
            self._child.kill()
            raise

    def stop(self, seconds: float = STOP_SECONDS_MAX) -> None:
        """Shuts the broker down cleanly; kills it when that takes longer than `seconds`."""
        self._child.stop(seconds)

    def kill(self) -> None:
        """SIGKILL: what a power cut leaves, short of the disk's own cache."""
        self._child.kill()

    def restart(self) -> None:
        """Stops the broker and starts it again on the same data and ports."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _format(self) -> None:
        cluster_id = self._own_cluster_id or new_cluster_id()
        result = subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._properties)),
            capture_output=True,
            text=True,
            timeout=FORMAT_SECONDS_MAX,
            check=False,
        )
        if result.returncode != 0:
            raise ProcessDied(f"formatting {self._data} failed: {result.stdout}{result.stderr}")

    def _java(self, main: str, *arguments: str) -> list[str]:
        may_use_archive = self._java_home is None and self._jars == KAFKA_JARS
        home = class_archives.java_home(class_archives.KAFKA) if may_use_archive else self._java_home
        return [
            _java_command() if home is None else str(home / "bin" / "java"),
            f"-Xms{self._heap_mib // 2}m",
            f"-Xmx{self._heap_mib}m",
            "-XX:+UseSerialGC",
            # Start-up is most of a short run's time on few cores: the first compiler is enough for one machine's load.
            "-XX:TieredStopAtLevel=1",
            # Its figures of itself, for other programs, wake a thread 20 times a second.
            "-XX:-UsePerfData",
            *_COMPILED_SOON,
            *(class_archives.options(class_archives.KAFKA) if may_use_archive else ()),
            f"-Dlog4j2.configurationFile={KAFKA_LOG4J.as_uri()}",
            "-cp",
            f"{self._jars}/*",
            main,
            *arguments,
        ]

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((self._address, self.port)) == 0

    def _answers(self) -> bool:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            cluster = admin.list_topics(timeout=_ANSWER_SECONDS_MAX)
        except KafkaException:
            return False
        # Another broker may have our port: its answer is not ours.
        return bool(cluster.brokers) and cluster.cluster_id == self._cluster_id()

    def _cluster_id(self) -> str:
        lines = (self._data / "meta.properties").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)["cluster.id"]


def new_cluster_id() -> str:
    """An id for a cluster. One that begins with a dash would look like an option."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def _java_command() -> str:
    found = shutil.which("java")
    if found is None:
        raise FileNotFoundError("java is not on the PATH: install a Java 17 runtime (openjdk-17-jre-headless)")
    return found
