"""A vulnerability database in the format of OSV, on disk, and which packages it says are affected.

Format: https://ossf.github.io/osv-schema/. OSV publishes one archive an ecosystem, `<ecosystem>/all.zip`, with a record a file; a
folder of such archives is a database, as osv-scanner keeps it too. Versions are compared as each ecosystem does (library univers).
"""

import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from packaging.utils import canonicalize_name
from univers.versions import DebianVersion, InvalidVersion, MavenVersion, PypiVersion, Version

PYPI: Final = "PyPI"
MAVEN: Final = "Maven"
DEBIAN: Final = "Debian"
ECOSYSTEMS: Final[dict[str, type[Version]]] = {PYPI: PypiVersion, MAVEN: MavenVersion, DEBIAN: DebianVersion}
ARCHIVE: Final = "all.zip"
_COMPARED: Final = frozenset({"ECOSYSTEM", "SEMVER"})


class DatabaseWrong(RuntimeError):
    """The folder is no database, or lacks an ecosystem; the text says which, and what is needed."""


@dataclass(frozen=True, order=True)
class Package:
    """One version of a package. A Maven name is `group:artifact`, or `artifact` where the group is not known.

    The ecosystem is OSV's, of Debian with the release: `Debian:12`; its name there is that of the source package.
    """

    ecosystem: str
    name: str
    version: str
    #: Where it was found, for the report.
    at: str


@dataclass(frozen=True, order=True)
class Finding:
    """A package, and a record that says it is affected."""

    package: Package
    id: str
    aliases: tuple[str, ...]
    summary: str


class _Named(msgspec.Struct):
    name: str
    ecosystem: str


class _Range(msgspec.Struct):
    type: str
    events: list[dict[str, str]] = []


class _Affected(msgspec.Struct):
    package: _Named | None = None
    ranges: list[_Range] = []
    versions: list[str] = []


class _Record(msgspec.Struct):
    id: str
    modified: str
    withdrawn: str | None = None
    aliases: list[str] = []
    summary: str = ""
    affected: list[_Affected] = []


_DECODER: Final = msgspec.json.Decoder(_Record)


@dataclass(frozen=True)
class Scanned:
    """What a scan found; `newest` is when the newest record of the database was changed (RFC 3339)."""

    findings: list[Finding]
    #: Packages whose version their ecosystem cannot read: nothing can be said of them.
    unreadable: list[Package]
    records: int
    newest: str


def scan(folder: Path, packages: Sequence[Package]) -> Scanned:
    """The packages that the database says are affected. Raises `DatabaseWrong`."""
    wanted: dict[tuple[str, str], list[Package]] = defaultdict(list)
    for package in packages:
        wanted[package.ecosystem, _key(package.ecosystem, package.name)].append(package)
    findings: set[Finding] = set()
    unreadable = {package for package in packages if _parsed(package.ecosystem, package.version) is None}
    records, newest = 0, ""
    for ecosystem in sorted({package.ecosystem.partition(":")[0] for package in packages}):
        for record in _records(folder, ecosystem):
            records, newest = records + 1, max(newest, record.modified)
            if record.withdrawn is not None:
                continue
            for affected in record.affected:
                findings |= {
                    Finding(package, record.id, tuple(record.aliases), record.summary)
                    for package in _candidates(affected, wanted)
                    if package not in unreadable and is_affected(package, affected)
                }
    return Scanned(sorted(findings), sorted(unreadable), records, newest)


def is_affected(package: Package, affected: _Affected) -> bool:
    """Whether the package's version is listed, or lies in a range; of a range each event holds from its version on."""
    if package.version in affected.versions:
        return True
    return any(_is_in(package, one.events) for one in affected.ranges if one.type in _COMPARED)


def _is_in(package: Package, events: Iterable[dict[str, str]]) -> bool:
    version = _parsed(package.ecosystem, package.version)
    if version is None:
        return False
    known: list[tuple[Version, str]] = []
    is_in = False
    for event in events:
        for kind, text in event.items():
            if kind == "introduced" and text == "0":
                is_in = True
            elif kind != "limit" and (at := _parsed(package.ecosystem, text)) is not None:
                known.append((at, kind))
    for at, kind in sorted(known, key=lambda one: one[0]):
        if kind == "introduced" and version >= at:
            is_in = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            is_in = False
    return is_in


def _parsed(ecosystem: str, text: str) -> Version | None:
    try:
        return ECOSYSTEMS[ecosystem.partition(":")[0]](text)
    except InvalidVersion:
        return None


def _candidates(affected: _Affected, wanted: dict[tuple[str, str], list[Package]]) -> Iterator[Package]:
    if affected.package is None:
        return
    ecosystem, name = affected.package.ecosystem, _key(affected.package.ecosystem, affected.package.name)
    yield from wanted.get((ecosystem, name), ())
    if ecosystem == MAVEN:
        # A jar that does not name its group is compared with every group.
        yield from wanted.get((ecosystem, name.partition(":")[2]), ())


def _key(ecosystem: str, name: str) -> str:
    return canonicalize_name(name) if ecosystem == PYPI else name


def archive_of(folder: Path, ecosystem: str) -> Path:
    """The archive of an ecosystem. Raises `DatabaseWrong` where it is not there."""
    path = folder / ecosystem / ARCHIVE
    if not path.exists():
        raise DatabaseWrong(
            f"{path} is not there: a database is a folder with OSV's archive of each ecosystem, here"
            f" {', '.join(f'{one}/{ARCHIVE}' for one in ECOSYSTEMS)} (docs/images.md has where they come from)"
        )
    return path


def _records(folder: Path, ecosystem: str) -> Iterator[_Record]:
    path = archive_of(folder, ecosystem)
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".json"):
                    yield _DECODER.decode(archive.read(name))
    except (OSError, zipfile.BadZipFile, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DatabaseWrong(f"{path} cannot be read: {error}") from None
