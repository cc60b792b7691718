"""The images are built from the Dockerfile as it is, hold what their service needs and no more, and run without a right."""

import json
import re

import pytest

from deploy.images import build
from deploy.images.daemon import Daemon, DockerFailed
from shared.metrics import ServiceName

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


def inside(daemon: Daemon, image: str, *command: str) -> str:
    """What a command prints in a container like those of the manifests."""
    sealed = ("--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
    return daemon.docker("run", *sealed, "--entrypoint", command[0], image, *command[1:])


def test_an_image_holds_its_own_services_packages_and_names_them(daemon: Daemon, image: str) -> None:
    service = image.removeprefix("playhead-").split(":")[0]
    listing = "import importlib.metadata as m, json; print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
    installed = json.loads(inside(daemon, image, "python", "-c", listing))
    packages = {re.sub(r"[-_.]+", "-", name): version for name, version in installed.items()}
    assert {name for name, package in OWN.items() if package in packages} == {service} & OWN.keys()
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
