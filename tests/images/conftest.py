"""A docker daemon of the tests' own, with a base image made here."""

import os
import shutil
from collections.abc import Iterator

import pytest

from deploy.images.daemon import Daemon
from deploy.local.paths import LOCAL


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    missing = [name for name in ("dockerd", "docker", "debootstrap") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.fail(f"needs root, and {', '.join(missing) or 'nothing else'}: `make images-test` installs it")
    with Daemon(LOCAL / "docker") as daemon:
        daemon.make_python()
        yield daemon
