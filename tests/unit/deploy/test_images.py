"""What goes into an image: packages as locked, the files that the Dockerfile copies, a probe that knows the ports."""

import hashlib
import http.server
import io
import json
import re
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import pytest

from deploy import rights
from deploy.images import bill, build
from deploy.images.locked import locked
from deploy.local.paths import ROOT
from services.collector.settings import CollectorSettings
from services.dashboard.settings import DashboardSettings
from services.finalizer.settings import FinalizerSettings
from services.notifications.settings import NotificationsSettings
from services.processor.settings import ProcessorSettings
from services.query.settings import QuerySettings
from services.rim.admin import probe
from services.serving.settings import ServingSettings
from services.webhooks.settings import WebhooksSettings
from shared.metrics import ServiceName

LOCK = """\
aiohttp==3.1 \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via playhead (pyproject.toml)
colorama==0.4 ; sys_platform == 'win32' \\
    --hash=sha256:cc
zstandard==0.25 \\
    --hash=sha256:dd
"""


POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <licenses><license><name>MIT</name></license></licenses>
</project>"""
#: Two descriptions: of the jar itself, and of one that was shaded into it.
DESCRIBED = {
    "META-INF/maven/a.b/shaded/pom.properties": "groupId=a.b\nartifactId=shaded\nversion=9",
    "META-INF/maven/org.x/good_2.13/pom.properties": "#made\nversion=1.2\ngroupId=org.x\nartifactId=good_2.13",
    "META-INF/maven/org.x/good_2.13/pom.xml": POM,
}
MANIFEST = {"META-INF/MANIFEST.MF": "Manifest-Version: 1.0\r\nBundle-License: https://exam\r\n ple.org/L\r\nX: y\r\n"}


class _Admin(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/livez" else 503)
        self.end_headers()
        self.wfile.write(b"taking partitions\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def admin_port() -> Iterator[int]:
    server = http.server.HTTPServer(("127.0.0.1", 0), _Admin)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_packages_come_with_the_hashes_of_the_lock_and_with_no_others() -> None:
    entries = list(locked(["zstandard==0.25", "aiohttp==3.1 ; python_version > '3'", "# a comment"], LOCK))
    assert entries == [
        "zstandard==0.25 \\\n    --hash=sha256:dd",
        "aiohttp==3.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:ab",
    ]


def test_a_package_that_is_not_as_locked_is_refused() -> None:
    with pytest.raises(KeyError, match=r"3\.2"):
        list(locked(["aiohttp==3.2"], LOCK))


def test_everything_that_the_dockerfile_copies_is_sent_and_no_secret_or_cache() -> None:
    stream = io.BytesIO()
    build.send_context(stream, "collector")
    stream.seek(0)
    with tarfile.open(fileobj=stream) as archive:
        sent = set(archive.getnames())
    assert not [name for name in sent if "__pycache__" in name or name.startswith((".local", "tests", ".git"))]
    for line in re.findall(r"^COPY (?!--from)(.*)$", (ROOT / build.DOCKERFILE).read_text(), re.M):
        for path in line.split()[:-1]:
            assert path in sent or path == ".local/jars/spark/*.ja[r]"


@pytest.mark.thorough
@pytest.mark.parametrize("tree", ["/opt/playhead/app/", "source/"])
def test_what_an_image_has_of_deploy_imports_nothing_that_it_lacks(tmp_path: Path, tree: str) -> None:
    names = []
    for line in re.findall(r"^COPY (?!--from)(.*)$", (ROOT / build.DOCKERFILE).read_text(), re.M):
        *paths, to = line.split()
        for path in paths if to.startswith(tree) else ():
            is_folder = (ROOT / path).is_dir()
            there = tmp_path / to.removeprefix(tree) / ("" if is_folder else Path(path).name)
            there.parent.mkdir(parents=True, exist_ok=True)
            there.symlink_to(ROOT / path)
            files = (ROOT / path).glob("*.py") if is_folder else [ROOT / path]
            modules = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files if file.suffix == ".py"]
            names += [name.removesuffix(".__init__") for name in modules if name.startswith("deploy.")]
    # Those of the compiler come from the other tree.
    for package in {"services", "shared"} - {one.name for one in tmp_path.iterdir()}:
        (tmp_path / package).symlink_to(ROOT / package)
    assert len(names) > 2

    program = f"import importlib\nfor name in {names}: importlib.import_module(name)"
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr[-500:]


def test_an_image_has_the_document_in_which_the_command_of_rights_looks() -> None:
    copied = re.findall(r"^COPY (docs/\S+) /opt/playhead/app/docs/$", (ROOT / build.DOCKERFILE).read_text(), re.M)
    assert copied == [str(rights.DOCUMENT.relative_to(ROOT))]


def jar(path: Path, files: Mapping[str, str]) -> str:
    """Writes a jar of these files; its sha256."""
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_bill_names_every_jar_with_version_hash_and_licence(tmp_path: Path) -> None:
    described = jar(tmp_path / "jars" / "good_2.13-1.2.jar", DESCRIBED)
    undescribed = jar(tmp_path / "jars" / "plain-3.0-rc1.jar", MANIFEST)
    bare, joined = jar(tmp_path / "bare.jar", {}), jar(tmp_path / "py4j0.10.9.jar", {})
    (tmp_path / "bill.json").write_text(json.dumps({"components": [{"name": "aiohttp", "version": "3"}]}))
    assert bill.main(str(tmp_path), str(tmp_path / "bill.json")) == 0
    package, *jars = json.loads((tmp_path / "bill.json").read_text())["components"]
    assert package["name"] == "aiohttp"
    assert [
        (one["purl"], one["hashes"][0]["content"], [held["license"]["name"] for held in one.get("licenses", ())])
        for one in jars
    ] == [
        ("pkg:generic/bare@unknown", bare, []),
        ("pkg:maven/org.x/good_2.13@1.2", described, ["MIT"]),
        ("pkg:generic/plain@3.0-rc1", undescribed, ["https://example.org/L"]),
        ("pkg:generic/py4j@0.10.9", joined, []),
    ]
    assert len({one["bom-ref"] for one in jars}) == 4


def test_the_dockerfile_installs_by_hash_and_runs_as_nobody() -> None:
    text = (ROOT / build.DOCKERFILE).read_text()
    installs = re.findall(r"(?:pip install|pip sync)[^&|]*", text)
    assert len(installs) == 4
    assert all("--require-hashes" in install for install in installs)
    assert re.search(r"^USER 10001:10001$", text, re.M)
    assert text.index("USER 10001") > text.index("COPY --from=build")


def test_the_base_and_debians_packages_are_pinned_and_tests_can_replace_them() -> None:
    text = (ROOT / build.DOCKERFILE).read_text()
    assert re.findall(r"^FROM (\S+)", text, re.M) == ["${PYTHON}", "base", "base"]
    assert re.search(r"^ARG PYTHON=python:3\.11-slim-bookworm@sha256:[0-9a-f]{64}$", text, re.M)
    assert re.search(r"^ARG DEBIAN_SNAPSHOT=20\d{6}T\d{6}Z$", text, re.M)
    # The archive is set before anything is read of it.
    assert text.index("snapshot.debian.org/archive/$1/$DEBIAN_SNAPSHOT") < text.index("apt-get update")
    replaced = [variable.removeprefix("PLAYHEAD_IMAGE_") for variable in build.PINS]
    assert replaced == re.findall(r"^ARG (PYTHON|DEBIAN_SNAPSHOT)=", text, re.M)


def test_the_rights_of_postgres_are_those_of_the_document() -> None:
    document = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/security.md").read_text(), re.DOTALL)
    statements = [line for block in document for line in block.splitlines() if line]
    in_file = (ROOT / "deploy/rights.sql").read_text().splitlines()
    assert [line for line in in_file if line and not line.startswith("--")] == statements


def test_the_probe_knows_every_services_port() -> None:
    of_rows = (
        FinalizerSettings,
        DashboardSettings,
        WebhooksSettings,
        ServingSettings,
        QuerySettings,
        NotificationsSettings,
    )
    classes = (CollectorSettings, ProcessorSettings, *of_rows)
    defaults = [settings.model_fields["admin_port"].default for settings in classes]
    assert dict(zip(get_args(ServiceName), defaults, strict=True)) == probe.PORTS


def test_the_probe_says_what_the_service_says(admin_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"PLAYHEAD_SERVICE": "processor", "PROCESSOR_ADMIN_PORT": str(admin_port)}
    assert probe.main(["livez"], environ) == 0
    assert probe.main(["readyz"], environ) == 1
    assert "taking partitions" in capsys.readouterr().out


def test_the_probe_says_no_where_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert probe.main([], {"PLAYHEAD_SERVICE": "collector", "COLLECTOR_ADMIN_PORT": "1"}) == 1
    assert "no answer on port 1" in capsys.readouterr().out
    assert probe.main([], {"PLAYHEAD_SERVICE": "broker"}) == 2
