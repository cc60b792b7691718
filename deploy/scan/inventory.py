"""What there is to scan: packages of requirements.lock, of folders of jars, and of images by what they contain."""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from deploy.images import bill
from deploy.scan.osv import DEBIAN, MAVEN, PYPI, Package

_LOCKED: Final = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_PURL: Final = re.compile(r"pkg:(?P<kind>[a-z]+)/(?P<name>[^@?#]+)@(?P<version>[^?#]+)")
BILL_PATH: Final = "/opt/playhead/bill.cdx.json"
STATUS_PATH: Final = "/var/lib/dpkg/status"
RELEASE_PATH: Final = "/etc/os-release"
_SECONDS_MAX: Final = 120


class ImageMissing(RuntimeError):
    """docker is not there, or has no such image; the text says which."""


def of_lock(text: str, at: str = "requirements.lock") -> list[Package]:
    """What a lock file pins, for every platform."""
    return [Package(PYPI, found["name"], found["version"], at) for found in _LOCKED.finditer(text)]


def of_jars(folders: Iterable[Path]) -> list[Package]:
    """Every jar below these folders."""
    return [one for folder in folders for one in of_bill({"components": list(bill.components(folder))}, at=folder.name)]


def of_bill(document: dict[str, Any], at: str) -> list[Package]:
    """What a bill of materials (CycloneDX) lists: Python packages and jars."""
    return [package for one in document.get("components", []) for package in _component(one, at)]


def of_status(text: str, release: str, at: str) -> list[Package]:
    """What dpkg says is installed, by source package; `release` is the text of /etc/os-release."""
    found = re.search(r'^VERSION_ID="?(\d+)"?$', release, re.MULTILINE)
    ecosystem = f"{DEBIAN}:{found[1] if found else 'unknown'}"
    packages = set()
    for paragraph in text.split("\n\n"):
        fields: dict[str, str] = dict(re.findall(r"^([A-Za-z-]+): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            # `Source: name (version)` where either differs from the binary package's.
            source, _, version = (fields.get("Source") or fields["Package"]).partition(" ")
            packages.add(Package(ecosystem, source, version.strip("()") or fields["Version"], at))
    return sorted(packages)


def of_image(name: str) -> list[Package]:
    """Everything in an image that docker has here. Raises `ImageMissing`."""
    listed = of_bill(json.loads(_read(name, BILL_PATH)), at=name)
    return [*listed, *of_status(_read(name, STATUS_PATH), _read(name, RELEASE_PATH), at=name)]


def _component(one: dict[str, Any], at: str) -> Iterator[Package]:
    found = _PURL.match(one.get("purl", ""))
    if found is None:
        return
    name, version = unquote(found["name"]), unquote(found["version"])
    if found["kind"] == "pypi":
        yield Package(PYPI, name, version, at)
    elif found["kind"] == "maven":
        yield Package(MAVEN, name.replace("/", ":"), version, at)
    elif found["kind"] == "generic" and one.get("bom-ref", "").startswith("jar:"):
        yield Package(MAVEN, name, version, at)


def _read(image: str, path: str) -> str:
    command = ["docker", "run", "--rm", "--pull", "never", "--network", "none", "--entrypoint", "cat", image, path]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False)
    except FileNotFoundError:
        raise ImageMissing("docker is not installed: images cannot be read") from None
    if ran.returncode != 0:
        raise ImageMissing(f"{image}: {ran.stderr.strip()[-500:]}")
    return ran.stdout
