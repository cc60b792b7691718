"""A database of OSV's format with known-vulnerable versions: they are found, and the fixed ones are not."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from deploy.local.paths import ROOT
from deploy.scan import __main__ as command
from deploy.scan import inventory
from deploy.scan.osv import DatabaseWrong, Package, scan

#: Records cut to what is compared, of real advisories.
RECORDS: dict[str, list[dict[str, Any]]] = {
    "PyPI": [
        {
            "id": "GHSA-5h86-8mv2-jq9f",
            "modified": "2024-05-02T00:00:00Z",
            "aliases": ["CVE-2024-23334"],
            "summary": "aiohttp is vulnerable to directory traversal",
            "affected": [
                {
                    "package": {"ecosystem": "PyPI", "name": "aiohttp"},
                    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "1.0.5"}, {"fixed": "3.9.2"}]}],
                }
            ],
        },
        {
            "id": "PYSEC-2023-135",
            "modified": "2023-08-07T00:00:00Z",
            "affected": [{"package": {"ecosystem": "PyPI", "name": "certifi"}, "versions": ["2022.12.7", "2023.5.7"]}],
        },
        {
            "id": "GHSA-with-drawn",
            "modified": "2025-01-01T00:00:00Z",
            "withdrawn": "2025-01-01T00:00:00Z",
            "affected": [
                {
                    "package": {"ecosystem": "PyPI", "name": "aiohttp"},
                    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}],
                }
            ],
        },
    ],
    "Maven": [
        {
            "id": "GHSA-jfh8-c2jp-5v3q",
            "modified": "2024-02-02T00:00:00Z",
            "aliases": ["CVE-2021-44228"],
            "affected": [
                {
                    "package": {"ecosystem": "Maven", "name": "org.apache.logging.log4j:log4j-core"},
                    "ranges": [
                        {"type": "ECOSYSTEM", "events": [{"introduced": "2.13.0"}, {"fixed": "2.15.0"}]},
                        {"type": "ECOSYSTEM", "events": [{"introduced": "2.0-beta9"}, {"fixed": "2.3.1"}]},
                    ],
                }
            ],
        }
    ],
    "Debian": [
        {
            "id": "DSA-5532-1",
            "modified": "2023-10-24T00:00:00Z",
            "affected": [
                {
                    "package": {"ecosystem": "Debian:12", "name": "openssl"},
                    "ranges": [
                        {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"last_affected": "3.0.11-1~deb12u1"}]}
                    ],
                }
            ],
        }
    ],
}
STATUS = """\
Package: libssl3
Status: install ok installed
Source: openssl
Version: {version}
Description: library
 Source: of nothing

Package: libexpat1
Status: deinstall ok config-files
Source: expat (2.5.0-1)
Version: 2.5.0-1+b1

Package: tini
Status: install ok installed
Version: 0.19.0-1
"""
RELEASE = 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\n'


@pytest.fixture
def database(tmp_path: Path) -> Path:
    folder = tmp_path / "database"
    for ecosystem, records in RECORDS.items():
        (folder / ecosystem).mkdir(parents=True)
        with zipfile.ZipFile(folder / ecosystem / "all.zip", "w") as archive:
            for record in records:
                archive.writestr(f"{record['id']}.json", json.dumps(record))
    return folder


@pytest.mark.parametrize(
    ("ecosystem", "name", "version", "ids"),
    [
        ("PyPI", "aiohttp", "3.9.1", ["GHSA-5h86-8mv2-jq9f"]),
        ("PyPI", "AIOHTTP", "3.9.2rc0", ["GHSA-5h86-8mv2-jq9f"]),
        ("PyPI", "aiohttp", "3.9.2", []),
        ("PyPI", "aiohttp", "1.0.4", []),
        ("PyPI", "aiohttp", "3.10.0", []),
        ("PyPI", "certifi", "2023.5.7", ["PYSEC-2023-135"]),
        ("PyPI", "certifi", "2023.7.22", []),
        ("PyPI", "log4j-core", "2.14.1", []),
        ("Maven", "org.apache.logging.log4j:log4j-core", "2.14.1", ["GHSA-jfh8-c2jp-5v3q"]),
        ("Maven", "org.apache.logging.log4j:log4j-core", "2.0-rc1", ["GHSA-jfh8-c2jp-5v3q"]),
        ("Maven", "org.apache.logging.log4j:log4j-core", "2.12.4", []),
        ("Maven", "org.apache.logging.log4j:log4j-core", "2.15.0", []),
        ("Maven", "org.example:log4j-core", "2.14.1", []),
        ("Maven", "log4j-core", "2.14.1", ["GHSA-jfh8-c2jp-5v3q"]),
        ("Debian:12", "openssl", "3.0.11-1~deb12u1", ["DSA-5532-1"]),
        ("Debian:12", "openssl", "3.0.11-1~deb12u2", []),
        ("Debian:11", "openssl", "3.0.11-1~deb12u1", []),
    ],
)
def test_a_version_is_affected_within_its_ranges_alone(
    database: Path, ecosystem: str, name: str, version: str, ids: list[str]
) -> None:
    assert [one.id for one in scan(database, [Package(ecosystem, name, version, "here")]).findings] == ids


def test_a_version_that_cannot_be_read_is_named(database: Path) -> None:
    odd = Package("PyPI", "aiohttp", "no version", "here")
    scanned = scan(database, [odd])
    assert (scanned.unreadable, scanned.findings, scanned.records) == ([odd], [], 3)
    assert scanned.newest == "2025-01-01T00:00:00Z"


def test_the_lock_is_read_whole() -> None:
    text = (ROOT / "requirements.lock").read_text()
    found = inventory.of_lock(text)
    assert len(found) == text.count("==") - sum(line.count("==") for line in text.splitlines() if line[:1] in " #") - (
        sum(line.partition(" ; ")[2].count("==") for line in text.splitlines() if line[:1] not in " #")
    )
    assert {"aiohttp", "pyspark", "univers"} <= {one.name for one in found}


def test_of_an_image_what_is_installed_counts_by_its_source(database: Path) -> None:
    old, new = (inventory.of_status(STATUS.format(version=f"3.0.11-1~deb12u{n}"), RELEASE, "image") for n in (1, 2))
    assert [(one.ecosystem, one.name) for one in old] == [("Debian:12", "openssl"), ("Debian:12", "tini")]
    assert [one.id for one in scan(database, old).findings] == ["DSA-5532-1"]
    assert scan(database, new).findings == []


def test_jars_and_python_packages_of_a_bill_are_compared(database: Path) -> None:
    bill = {
        "components": [
            {"bom-ref": "aiohttp==3.9.1", "purl": "pkg:pypi/aiohttp@3.9.1"},
            {"bom-ref": "jar:a", "purl": "pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1"},
            {"bom-ref": "jar:b", "purl": "pkg:generic/log4j-core@2.14.1"},
            {"bom-ref": "x", "purl": "pkg:generic/log4j-core@2.14.1"},
            {"bom-ref": "y"},
        ]
    }
    found = scan(database, inventory.of_bill(bill, "image")).findings
    assert [(one.package.ecosystem, one.package.name) for one in found] == [
        ("Maven", "log4j-core"),
        ("Maven", "org.apache.logging.log4j:log4j-core"),
        ("PyPI", "aiohttp"),
    ]


def test_the_command_fails_for_a_known_vulnerability_and_names_it(
    database: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def holding(*packages: Package) -> None:
        monkeypatch.setattr(command, "packages", lambda _: list(packages))

    holding(Package("PyPI", "aiohttp", "3.9.2", "requirements.lock"))
    assert command.main([str(database)]) == 0
    assert "0 known vulnerabilities" in capsys.readouterr().out
    holding(Package("PyPI", "aiohttp", "3.9.1", "requirements.lock"))
    assert command.main([str(database)]) == 1
    assert (
        "requirements.lock: aiohttp 3.9.1: GHSA-5h86-8mv2-jq9f, CVE-2024-23334: aiohttp is" in capsys.readouterr().out
    )


@pytest.mark.thorough
def test_a_database_that_is_not_there_is_no_clean_scan(
    tmp_path: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([str(tmp_path / "none")]) == 2
    assert "PyPI/all.zip, Maven/all.zip, Debian/all.zip" in capsys.readouterr().err
    (database / "PyPI" / "all.zip").write_bytes(b"no archive")
    with pytest.raises(DatabaseWrong, match="cannot be read"):
        scan(database, [Package("PyPI", "aiohttp", "3.9.1", "here")])
