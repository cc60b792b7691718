"""Adds every jar below a folder to a bill of materials (CycloneDX 1.6, JSON): `bill.py FOLDER BILL`.

The generator of the bill lists only Python packages, and PySpark's wheel contains some hundred jars. Name, group and version come
from the jar's Maven description (META-INF/maven), or else from its file name. Licences come from its description or its manifest
(`Bundle-License`). Jars shaded into a jar are a part of it. deploy/Dockerfile runs it before the project is installed: it needs
only Python.
"""

import hashlib
import json
import re
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

#: As Maven names files; and as those that are not Maven's do (py4j0.10.9.9.jar).
_FILE_NAMES = (re.compile(r"(?P<name>.+?)-(?P<version>\d.*)"), re.compile(r"(?P<name>.+?)(?P<version>\d+(\.\d+)+.*)"))
_DESCRIPTION = re.compile(r"META-INF/maven/(?P<group>[^/]+)/(?P<name>[^/]+)/pom\.properties")


def components(folder: Path) -> Iterator[dict[str, Any]]:
    """A component of each jar below the folder, in the order of their paths."""
    for path in sorted(folder.rglob("*.jar")):
        yield component(path, str(path.relative_to(folder)))


def component(path: Path, at: str) -> dict[str, Any]:
    """The bill's entry of one jar; `at` is its path. Raises `zipfile.BadZipFile` for a file that is not a jar."""
    with zipfile.ZipFile(path) as jar:
        group, name, version = _identity(jar, path.stem)
        licences = _licences(jar, group, name)
    kind = f"maven/{quote(group)}" if group else "generic"
    entry: dict[str, Any] = {
        "bom-ref": f"jar:{at}",
        "type": "library",
        **({"group": group} if group else {}),
        "name": name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
        "purl": f"pkg:{kind}/{quote(name)}@{quote(version)}",
        "properties": [{"name": "playhead:file", "value": at}],
    }
    if licences:
        entry["licenses"] = [{"license": {"name": licence}} for licence in licences]
    return entry


def _identity(jar: zipfile.ZipFile, stem: str) -> tuple[str, str, str]:
    """Group (empty where unknown), name, version."""
    for entry in sorted(jar.namelist()):
        if found := _DESCRIPTION.fullmatch(entry):
            lines = jar.read(entry).decode(errors="replace").splitlines()
            properties = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
            # Another's description may be shaded in; a file's name begins with its own.
            if stem.startswith(f"{found['name']}-{properties.get('version', '')}"):
                return found["group"], found["name"], properties["version"]
    named = next((found for form in _FILE_NAMES if (found := form.fullmatch(stem))), None)
    return ("", named["name"], named["version"]) if named else ("", stem, "unknown")


def _licences(jar: zipfile.ZipFile, group: str, name: str) -> list[str]:
    names: list[str] = []
    pom = f"META-INF/maven/{group}/{name}/pom.xml"
    if pom in jar.namelist():
        root = ET.fromstring(jar.read(pom))  # noqa: S314 - of a jar whose hash was checked
        names = [(found.text or "").strip() for found in root.findall("{*}licenses/{*}license/{*}name")]
    if not names and "META-INF/MANIFEST.MF" in jar.namelist():
        # A line goes on where the next begins with a blank.
        manifest = jar.read("META-INF/MANIFEST.MF").decode(errors="replace").replace("\r\n", "\n").replace("\n ", "")
        if found := re.search(r"^Bundle-License: (.+)$", manifest, re.MULTILINE):
            names = [found[1].strip()]
    return [name for name in names if name]


def main(folder: str, bill: str) -> int:
    """The command."""
    document = json.loads(Path(bill).read_text(encoding="utf-8"))
    document.setdefault("components", []).extend(components(Path(folder)))
    Path(bill).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
