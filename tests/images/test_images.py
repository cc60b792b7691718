"""The images are built from the Dockerfile as it is, hold what their service needs and no more, and run without a right."""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.images import build
from deploy.images.daemon import Daemon, DockerFailed
from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import wait_until
from deploy.topics import create_topics
from shared.metrics import ServiceName
from shared.settings import Settings

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1_800)]

SECONDS_MAX = 300.0
#: Of each extra a package that the others lack.
OWN = {"collector": "uvloop", "processor": "rocksdict", "finalizer": "pyspark", "dashboard": "psycopg-pool"}
BEACON = (
    b'{"meta":{"transmission_timestamp":1},"events":[{"e":"viewstart","emti":"v1","xid":"v1","ake":"acme","xsqno":1}]}'
)


@pytest.fixture(scope="module", params=build.SERVICES)
def image(daemon: Daemon, request: pytest.FixtureRequest) -> str:
    service: ServiceName = request.param
    return build.build(service, environ=daemon.environ)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        create_topics(Settings(kafka_bootstrap=broker.bootstrap))
        yield broker


def inside(daemon: Daemon, image: str, *command: str) -> str:
    """What a command prints in a container like those of the manifests."""
    sealed = ("--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
    return daemon.docker("run", *sealed, "--entrypoint", command[0], image, *command[1:])


class Container:
    """One service, running on the host's network without any right."""

    def __init__(self, daemon: Daemon, image: str, **environ: str) -> None:
        self._daemon = daemon
        variables = [word for name, value in environ.items() for word in ("--env", f"{name}={value}")]
        sealed = ("--read-only", "--tmpfs", "/tmp", "--tmpfs", "/state:uid=10001", "--cap-drop", "ALL")
        arguments = ("--detach", "--network", "host", "--security-opt", "no-new-privileges", *sealed, *variables)
        self.id = daemon.docker("run", *arguments, image).strip()

    def told(self) -> dict[str, Any]:
        return dict(json.loads(self._daemon.docker("inspect", self.id))[0]["State"])

    def is_healthy(self) -> bool:
        state = self.told()
        assert state["Running"], self.logs()
        return bool(state["Health"]["Status"] == "healthy")

    def logs(self) -> str:
        return self._daemon.docker("logs", self.id)

    def stop(self) -> int:
        self._daemon.docker("stop", "--time", "120", self.id)
        return int(self.told()["ExitCode"])


def test_an_image_holds_its_own_services_packages_and_names_them(daemon: Daemon, image: str) -> None:
    service = image.removeprefix("playhead-").split(":")[0]
    listing = "import importlib.metadata as m, json; print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
    installed = json.loads(inside(daemon, image, "python", "-c", listing))
    packages = {re.sub(r"[-_.]+", "-", name): version for name, version in installed.items()}
    assert {name for name, package in OWN.items() if package in packages} == {service}
    assert "pip" not in packages
    assert "opentelemetry-sdk" in packages

    bill = json.loads(inside(daemon, image, "cat", "/opt/playhead/bill.cdx.json"))
    assert bill["bomFormat"] == "CycloneDX"
    assert {
        part["name"].lower().replace("_", "-").replace(".", "-"): part["version"] for part in bill["components"]
    } == packages

    jars = inside(daemon, image, "ls", "/opt/playhead/jars").split()
    assert bool(jars) == (service == "finalizer")
    if jars:
        inside(daemon, image, "sh", "-c", "cd /opt/playhead/jars && sha256sum --check --strict --quiet SHA256SUMS")
        assert "views" in json.loads(inside(daemon, image, "python", "-m", "services.finalizer", "schema"))
        inside(daemon, image, "java", "-version")


def test_an_image_runs_as_nobody_and_says_what_it_is(daemon: Daemon, image: str) -> None:
    assert inside(daemon, image, "id").startswith("uid=10001(playhead) gid=10001(playhead)")
    config = json.loads(daemon.docker("inspect", image))[0]["Config"]
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()}
    assert f"{labels['title']}:{labels['version']}" == image
    assert re.fullmatch("[0-9a-f]{40}", labels["revision"])
    assert labels["licenses"] == "Apache-2.0"
    assert config["User"] == "10001:10001"
    assert config["Healthcheck"]["Test"][0] == "CMD"
    # Nothing of the project can be written to by the user it runs as.
    with pytest.raises(DockerFailed):
        daemon.docker("run", "--rm", "--entrypoint", "touch", image, "/opt/playhead/app/services/x")


def test_a_service_without_its_settings_says_what_is_wrong(daemon: Daemon, image: str) -> None:
    service = image.removeprefix("playhead-").split(":")[0]
    with pytest.raises(DockerFailed, match=f"{service.upper()}_ADMIN_PORT='none'"):
        daemon.docker(
            "run",
            "--rm",
            "--env",
            f"{service.upper()}_ADMIN_PORT=none",
            image,
            *(["stream"] * (service == "finalizer")),
        )


def test_a_collector_and_a_slot_work_and_end_cleanly_on_sigterm(daemon: Daemon, broker: Broker, tmp_path: Path) -> None:
    http, admin, slot_admin = free_port(), free_port(), free_port()
    common = {"PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap}
    collector = Container(
        daemon,
        build.build("collector", environ=daemon.environ),
        **common,
        COLLECTOR_PORT=str(http),
        COLLECTOR_ADMIN_PORT=str(admin),
    )
    slot = Container(
        daemon, build.build("processor", environ=daemon.environ), **common, PROCESSOR_ADMIN_PORT=str(slot_admin)
    )
    wait_until(collector.is_healthy, SECONDS_MAX, "the collector is healthy")
    wait_until(slot.is_healthy, SECONDS_MAX, "the slot is healthy")

    request = urllib.request.Request(f"http://127.0.0.1:{http}/", data=BEACON, headers={"Content-Type": "text/plain"})
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        assert answer.status == 200

    def folded() -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{slot_admin}/metrics", timeout=SECONDS_MAX) as answer:
            return 'playhead_processor_records_total{application="video_views"}' in answer.read().decode()

    wait_until(folded, SECONDS_MAX, "the beacon is folded")
    for container in (collector, slot):
        assert daemon.docker("exec", container.id, "cat", "/proc/1/comm").strip() == "tini"
        assert container.stop() == 0, container.logs()
        assert '"event": "stopped"' in container.logs() or '"clean": true' in container.logs()
