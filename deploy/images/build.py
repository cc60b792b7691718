"""Builds the images of the services with the docker at hand: `python -m deploy.images.build [SERVICE ...]`."""

import argparse
import contextlib
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Final, get_args

from deploy.local.paths import ROOT, SPARK_JARS
from shared.metrics import ServiceName

SERVICES: Final[tuple[ServiceName, ...]] = get_args(ServiceName)
DOCKERFILE: Final = "deploy/Dockerfile"
#: Everything that the Dockerfile copies; nothing else of the checkout is sent to docker.
CONTEXT: Final = (
    DOCKERFILE,
    "deploy/local/uv.txt",
    "deploy/images/locked.py",
    "deploy/images/bill.py",
    "deploy/fetched/jars/spark/SHA256SUMS",
    "deploy/__init__.py",
    "deploy/compiled",
    "deploy/local/__init__.py",
    "deploy/local/paths.py",
    "deploy/topics.py",
    "deploy/growing",
    "deploy/customers_table.py",
    "deploy/rights.py",
    "deploy/rights.sql",
    "deploy/database.py",
    "docs/security.md",
    "pyproject.toml",
    "requirements.lock",
    "LICENSE",
    "NOTICE",
    "shared",
    "services",
)
#: What replaces the base image and the archive that the Dockerfile pins: where no registry is at hand.
PINS: Final = ("PLAYHEAD_IMAGE_PYTHON", "PLAYHEAD_IMAGE_DEBIAN_SNAPSHOT")
BUILD_SECONDS_MAX: Final = 1_800


class BuildFailed(RuntimeError):
    """docker did not build an image; the text is the end of its output."""


def name_of(service: ServiceName, version: str) -> str:
    """The image's name and tag."""
    return f"playhead-{service}:{version}"


def build(service: ServiceName, *, version: str = "0.1.0", environ: Mapping[str, str] = os.environ) -> str:
    """Builds one image from deploy/Dockerfile; its name. Raises `BuildFailed`."""
    name = name_of(service, version)
    arguments = ["--file", DOCKERFILE, "--network", "host"]
    for argument, value in (("SERVICE", service), ("VERSION", version), ("REVISION", _revision())):
        arguments += ["--build-arg", f"{argument}={value}"]
    for variable in PINS:
        if variable in environ:
            arguments += ["--build-arg", f"{variable.removeprefix('PLAYHEAD_IMAGE_')}={environ[variable]}"]
    run_build(name, arguments, partial(send_context, service=service), environ)
    return name


def run_build(
    name: str, arguments: Sequence[str], send: Callable[[IO[bytes]], None], environ: Mapping[str, str]
) -> None:
    """`docker build` of the context that `send` writes as a tar archive. Raises `BuildFailed`."""
    # The Dockerfiles want nothing that only the newer builder has.
    child = subprocess.Popen(
        ["docker", "build", "--tag", name, *arguments, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environ) | {"DOCKER_BUILDKIT": "0"},
    )
    assert child.stdin is not None
    # Where docker hangs up, its own output has the reason.
    with contextlib.suppress(BrokenPipeError):
        send(child.stdin)
    output, _ = child.communicate(timeout=BUILD_SECONDS_MAX)
    if child.returncode != 0:
        raise BuildFailed(f"{name}: {output.decode(errors='replace')[-4_000:]}")


def send_context(to: IO[bytes], service: ServiceName) -> None:
    """Writes what the Dockerfile copies as a tar archive; the jars for the finalizer alone."""
    with tarfile.open(fileobj=to, mode="w|", dereference=True) as archive:
        for path in CONTEXT:
            archive.add(ROOT / path, path, filter=_without_caches)
        if service == "finalizer":
            archive.add(SPARK_JARS, str(SPARK_JARS.relative_to(ROOT)))


def _without_caches(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if Path(file.name).name == "__pycache__":
        return None
    # Neither owner nor time of the checkout is part of an image.
    file.uid = file.gid = file.mtime = 0
    file.uname = file.gname = ""
    return file


def _revision() -> str:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return head.stdout.strip() or "unknown"


def main(arguments: Sequence[str]) -> int:
    """The command; 1 when an image could not be built."""
    parser = argparse.ArgumentParser(prog="python -m deploy.images.build", description=__doc__)
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"of {', '.join(SERVICES)}; none: all")
    parser.add_argument("--version", default="0.1.0", help="the images' tag")
    given = parser.parse_args(arguments)
    if unknown := set(given.services) - set(SERVICES):
        parser.error(f"no service: {', '.join(sorted(unknown))}")
    for service in SERVICES:
        if given.services and service not in given.services:
            continue
        try:
            print(build(service, version=given.version), flush=True)
        except BuildFailed as problem:
            print(problem, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
