"""The images are built from the Dockerfile as it is, hold what their service needs and no more, and run without a right."""

import json
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer

from deploy.images import build
from deploy.images.daemon import Daemon, DockerFailed
from deploy.images.third_party import build_stand_in
from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import wait_until
from deploy.topics import create_topics
from shared.metrics import ServiceName
from shared.settings import Settings
from shared.topics import BEACONS

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1_800)]

SECONDS_MAX = 600.0
#: Of each extra a package that the others lack.
OWN = {"collector": "uvloop", "processor": "rocksdict", "finalizer": "pyspark", "dashboard": "psycopg-pool"}
BEACON = (
    b'{"meta":{"transmission_timestamp":1},"events":[{"e":"viewstart","emti":"v1","xid":"v1","ake":"acme","xsqno":1}]}'
)
#: Like the manifests' containers: nothing to write but what is given, and no right.
SEALED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")


@dataclass(frozen=True)
class Stores:
    """What services need: the broker's address, and the serving database's."""

    bootstrap: str
    postgres_dsn: str


@pytest.fixture(scope="module")
def stores(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    image, port = build_stand_in("postgres", daemon.environ), free_port()
    variables = (
        "--env",
        "POSTGRES_USER=playhead",
        "--env",
        "POSTGRES_DB=playhead",
        "--env",
        "POSTGRES_PASSWORD=secret",
    )
    postgres = daemon.docker("run", "--detach", "--publish", f"127.0.0.1:{port}:5432", *variables, image).strip()
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        create_topics(Settings(kafka_bootstrap=broker.bootstrap))
        wait_until(lambda: answers(daemon, postgres), SECONDS_MAX, "Postgres answers")
        yield Stores(broker.bootstrap, f"postgresql://playhead:secret@127.0.0.1:{port}/playhead")
    daemon.docker("rm", "--force", "--volumes", postgres)


def answers(daemon: Daemon, postgres: str) -> bool:
    try:
        daemon.docker("exec", postgres, "pg_isready", "--username", "playhead", "--host", "127.0.0.1")
    except DockerFailed:
        return False
    return True


@pytest.fixture(scope="module", params=build.SERVICES)
def image(daemon: Daemon, request: pytest.FixtureRequest) -> str:
    service: ServiceName = request.param
    return build.build(service, environ=daemon.environ)


def inside(daemon: Daemon, image: str, *command: str) -> str:
    """What a command prints in a container like those of the manifests."""
    return daemon.docker("run", "--rm", *SEALED, "--entrypoint", command[0], image, *command[1:])


def service_of(image: str) -> ServiceName:
    name = image.removeprefix("playhead-").split(":")[0]
    return next(service for service in build.SERVICES if service == name)


class Container:
    """One service, running on the host's network without any right."""

    def __init__(self, daemon: Daemon, image: str, *arguments: str, **environ: str) -> None:
        self._daemon = daemon
        variables = [word for name, value in environ.items() for word in ("--env", f"{name}={value}")]
        # What may be written to is the image's own folder of an anonymous volume, as in the compose file.
        volumes = ("--volume", "/state", "--volume", "/warehouse")
        self.id = daemon.docker(
            "run", "--detach", "--network", "host", *SEALED, *volumes, *variables, image, *arguments
        ).strip()

    def state(self) -> dict[str, Any]:
        return dict(json.loads(self._daemon.docker("inspect", self.id))[0]["State"])

    def is_healthy(self) -> bool:
        state = self.state()
        assert state["Running"], self.logs()
        return bool(state["Health"]["Status"] == "healthy")

    def logs(self) -> str:
        return self._daemon.docker("logs", self.id)

    def stop(self) -> int:
        self._daemon.docker("stop", "--time", "120", self.id)
        return int(self.state()["ExitCode"])

    def remove(self) -> None:
        self._daemon.docker("rm", "--force", "--volumes", self.id)


def test_an_image_holds_its_own_services_packages_and_names_them(daemon: Daemon, image: str) -> None:
    service = service_of(image)
    listing = "import importlib.metadata as m, json; print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
    installed = json.loads(inside(daemon, image, "python", "-c", listing))
    packages = {re.sub(r"[-_.]+", "-", name): version for name, version in installed.items()}
    assert {name for name, package in OWN.items() if package in packages} == {service} & OWN.keys()
    assert "pip" not in packages
    assert "opentelemetry-sdk" in packages

    bill = json.loads(inside(daemon, image, "cat", "/opt/playhead/bill.cdx.json"))
    assert bill["bomFormat"] == "CycloneDX"
    named = [part for part in bill["components"] if part["purl"].startswith("pkg:pypi/")]
    assert {re.sub(r"[-_.]+", "-", part["name"].lower()): part["version"] for part in named} == packages

    # Every jar of the image is in it, PySpark's own included, by its hash.
    sums = inside(daemon, image, "sh", "-c", "find /opt/playhead -name '*.jar' -type f -exec sha256sum {} +")
    listed = [part for part in bill["components"] if part not in named]
    assert sorted(part["hashes"][0]["content"] for part in listed) == sorted(re.findall("^[0-9a-f]{64}", sums, re.M))
    assert all(part["name"] and part["version"] != "unknown" for part in listed)
    assert (len(listed) > 100) == (service == "finalizer")

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
    service = service_of(image)
    with pytest.raises(DockerFailed, match=f"{service.upper()}_ADMIN_PORT='none'"):
        daemon.docker(
            "run",
            "--rm",
            "--env",
            f"{service.upper()}_ADMIN_PORT=none",
            image,
            *(["stream"] * (service == "finalizer")),
        )


def environ_of(service: ServiceName, stores: Stores, ports: tuple[int, int]) -> dict[str, str]:
    """The settings with which a service works: on `ports`, those of what it serves and of its admin endpoint."""
    http, admin = map(str, ports)
    own = {
        "collector": {"COLLECTOR_PORT": http},
        "processor": {},
        "finalizer": {
            "FINALIZER_WAREHOUSE_DIR": "/warehouse/tables",
            "FINALIZER_CHECKPOINT_DIR": "/warehouse/checkpoint",
            "FINALIZER_POSTGRES_DSN": stores.postgres_dsn,
            "FINALIZER_DRIVER_MEMORY": "1g",
            "FINALIZER_APPLICATIONS": "",
        },
        "dashboard": {"DASHBOARD_PORT": http, "DASHBOARD_POSTGRES_DSN": stores.postgres_dsn},
        "serving": {"SERVING_POSTGRES_DSN": stores.postgres_dsn},
        "query": {
            "QUERY_PORT": http,
            "QUERY_POSTGRES_DSN": stores.postgres_dsn,
            "QUERY_WAREHOUSE_DIR": "/warehouse",
        },
        "webhooks": {"WEBHOOKS_URL": "http://127.0.0.1:9/", "WEBHOOKS_SECRET": "x" * 32},
    }[service]
    common = {"PLAYHEAD_KAFKA_BOOTSTRAP": stores.bootstrap, f"{service.upper()}_ADMIN_PORT": admin}
    return {**common, **own}


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS_MAX) as answer:
        return str(answer.read().decode())


def test_a_service_becomes_healthy_works_and_ends_cleanly_on_sigterm(
    daemon: Daemon, image: str, stores: Stores
) -> None:
    service, ports = service_of(image), (free_port(), free_port())
    arguments = ("stream",) if service == "finalizer" else ()
    container = Container(daemon, image, *arguments, **environ_of(service, stores, ports))
    try:
        wait_until(container.is_healthy, SECONDS_MAX, f"{service} is healthy", every=0.5)
        assert f"playhead_{service}" in get(ports[1], "/metrics")
        if service == "collector":
            headers = {"Content-Type": "text/plain"}
            request = urllib.request.Request(f"http://127.0.0.1:{ports[0]}/", data=BEACON, headers=headers)
            with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
                assert answer.status == 200
        if service == "processor":
            producer = Producer({"bootstrap.servers": stores.bootstrap})
            producer.produce(BEACONS.name, key=b"acme:v1", value=b"none", partition=0)
            assert producer.flush(SECONDS_MAX) == 0
            counted = re.compile(r'playhead_processor_records_total\{application="video_views"\} [1-9]')
            wait_until(lambda: bool(counted.search(get(ports[1], "/metrics"))), SECONDS_MAX, "a record is read")
        if service == "dashboard":
            assert "<html" in get(ports[0], "/")
        assert daemon.docker("exec", container.id, "cat", "/proc/1/comm").strip() == "tini"
        assert container.stop() == 0, container.logs()
    finally:
        container.remove()
