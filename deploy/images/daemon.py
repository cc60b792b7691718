"""A private docker daemon, and locally built base images: for tests of images without a registry. Needs root.

Debian's packages docker.io, debootstrap and iptables are needed (`apt-get install --no-install-recommends`). Third-party images get
the public names of deploy/Dockerfile and deploy/compose.yaml, so that both are tested unchanged.
"""

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from deploy.images.build import PINS
from deploy.images.third_party import stand_in_variables
from deploy.local.process import Child

START_SECONDS_MAX: Final = 120.0
STOP_SECONDS_MAX: Final = 60.0
MAKE_SECONDS_MAX: Final = 1_200
PACKAGES: Final = ("docker.io", "docker-compose", "debootstrap", "iptables")
_BUNDLE: Final = "etc/ssl/certs/ca-certificates.crt"
_DEBIAN: Final = "bookworm"
PYTHON: Final = "python:3.11-slim"


class DockerFailed(RuntimeError):
    """A docker command failed; the text is its output."""


class Daemon:
    """dockerd on a unix socket in `folder`, with everything it keeps there. Stops with its containers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._socket = self._folder / "docker.sock"
        config = self._folder / "daemon.json"
        self._child = Child("dockerd", ["dockerd", "--config-file", str(config)], log_file=self._folder / "dockerd.log")
        self._config = config

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment in which `docker` speaks to this daemon, and images are made of what is at hand instead of a registry."""
        pins = dict(zip(PINS, (PYTHON, ""), strict=True))
        return dict(os.environ) | {"DOCKER_HOST": f"unix://{self._socket}"} | pins | stand_in_variables()

    def start(self) -> None:
        """Starts it and waits until it answers. Raises `ProcessDied` or `DeadlinePassed`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "data-root": str(self._folder / "data"),
            "exec-root": str(self._folder / "exec"),
            "pidfile": str(self._folder / "docker.pid"),
            "hosts": [f"unix://{self._socket}"],
            # Within a container of its own the daemon may not raise limits. That of processes counts all threads of a user
            # in all containers together.
            "default-ulimits": {
                name: {"Name": name, "Soft": hard, "Hard": hard}
                for name, (_, hard) in (
                    ("nofile", resource.getrlimit(resource.RLIMIT_NOFILE)),
                    ("nproc", resource.getrlimit(resource.RLIMIT_NPROC)),
                )
            },
        }
        self._config.write_text(json.dumps(settings))
        (self._folder / "docker.pid").unlink(missing_ok=True)
        self._child.start()
        self._child.wait_until(self._answers, START_SECONDS_MAX, "answering")

    def stop(self) -> None:
        """Stops it, and every container with it."""
        if self._child.is_running:
            running = self.docker("ps", "--quiet").split()
            if running:
                self.docker("rm", "--force", "--volumes", *running)
        self._child.stop(STOP_SECONDS_MAX)

    def docker(self, *arguments: str, seconds: float = MAKE_SECONDS_MAX) -> str:
        """Runs `docker`; what it printed. Raises `DockerFailed`."""
        done = subprocess.run(
            ["docker", *arguments], capture_output=True, text=True, timeout=seconds, check=False, env=self.environ
        )
        if done.returncode != 0:
            raise DockerFailed(f"docker {' '.join(arguments[:3])}: {done.stdout[-2_000:]}{done.stderr[-2_000:]}")
        return done.stdout

    def make_python(self) -> None:
        """Makes `python:3.11-slim` of Debian's packages, unless it is there. It trusts whom this machine trusts."""
        if self.docker("images", "--quiet", PYTHON).strip():
            return
        root = self._folder / "root"
        if not (root / "usr/include/python3.11/Python.h").exists():
            shutil.rmtree(root, ignore_errors=True)
            include = "--include=ca-certificates,python3,python3-dev,python3-pip,python3-venv"
            subprocess.run(
                ["debootstrap", "--variant=minbase", include, _DEBIAN, str(root)],
                check=True,
                timeout=MAKE_SECONDS_MAX,
                stdout=subprocess.DEVNULL,
            )
        (root / "usr/bin/python").unlink(missing_ok=True)
        (root / "usr/bin/python").symlink_to("python3")
        (root / "usr/lib/python3.11/EXTERNALLY-MANAGED").unlink(missing_ok=True)
        for file in (_BUNDLE, "etc/pip.conf"):
            if Path("/", file).exists():
                shutil.copy(Path("/", file), root / file)
        trusts = f"ENV PIP_CERT=/{_BUNDLE} SSL_CERT_FILE=/{_BUNDLE}"
        with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tar:
            subprocess.run(
                ["docker", "import", "--change", trusts, "-", PYTHON],
                stdin=tar.stdout,
                check=True,
                timeout=MAKE_SECONDS_MAX,
                env=self.environ,
                stdout=subprocess.DEVNULL,
            )

    def _answers(self) -> bool:
        try:
            self.docker("version", seconds=START_SECONDS_MAX)
        except DockerFailed:
            return False
        return True

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
