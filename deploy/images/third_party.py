"""Local images under the third-party names of deploy/compose.yaml: for tests without a registry.

deploy/images/stand_ins has their sources. Debian has no package of Grafana, so it has no stand-in.
"""

import re
import tarfile
from collections.abc import Mapping
from typing import IO, Final

import yaml

from deploy.images.build import run_build
from deploy.local.paths import KAFKA_JARS, KAFKA_LOG4J, ROOT

COMPOSE_FILE: Final = ROOT / "deploy/compose.yaml"
#: Service of the compose file -> stage of the stand-ins' Dockerfile.
STAGES: Final[Mapping[str, str]] = {"kafka-1": "kafka", "postgres": "postgres", "prometheus": "prometheus"}
#: `${KAFKA_IMAGE:-apache/kafka:4.3.1@sha256:...}`, of which the compose file consists where the image is another's.
_NAMED: Final = re.compile(r"^\$\{(?P<variable>\w+):-(?P<name>[^@}]+)(?:@sha256:[0-9a-f]{64})?\}$")
_STAND_INS: Final = ROOT / "deploy/images/stand_ins"


def image_of(service: str) -> str:
    """The image that the compose file names for a service, by its tag: a stand-in has another digest."""
    named = yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8"))["services"][service]["image"]
    return str(_NAMED.sub(r"\g<name>", named))


def stand_in_variables() -> dict[str, str]:
    """The variables of the compose file that have it start the stand-ins: name -> image."""
    services = yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8"))["services"]
    named = (_NAMED.match(services[service]["image"]) for service in STAGES)
    return {one["variable"]: one["name"] for one in named if one is not None}


def build_stand_in(service: str, environ: Mapping[str, str]) -> str:
    """Builds the stand-in for a service of `STAGES`; the image's name. Raises `BuildFailed`."""
    name = image_of(service)
    run_build(name, ["--target", STAGES[service], "--network", "host"], _send_context, environ)
    return name


def _send_context(to: IO[bytes]) -> None:
    with tarfile.open(fileobj=to, mode="w|", dereference=True) as archive:
        for name in ("Dockerfile", "kafka.py", "postgres.sh"):
            archive.add(_STAND_INS / name, name, filter=_unowned)
        archive.add(KAFKA_LOG4J, KAFKA_LOG4J.name, filter=_unowned)
        archive.add(KAFKA_JARS, "jars", filter=_unowned)


def _unowned(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.uid = file.gid = file.mtime = 0
    file.uname = file.gname = ""
    # Files of an image are readable for all users, independent of the checkout's file modes.
    file.mode |= 0o444
    return file
