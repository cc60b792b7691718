"""Compiled code writes the same bytes as the interpreted code of its source: the intake, and the fold of every application."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from deploy.compiled import build
from deploy.local.paths import LOCAL, ROOT
from services.rim.process.compiled import MANIFEST, SUFFIX
from tests.compiled.written import VARIABLE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_200)]

_APPLICATIONS: Final = "tests/unit/processor/applications"
_COLLECTOR: Final = "tests/unit/collector"
#: What drives the intake and each application: beacons of real players as they were captured, stories, generated sessions, and
#: hostile requests.
TESTS: Final = (
    "tests/fuzz",
    f"{_COLLECTOR}/admission",
    f"{_COLLECTOR}/intake/test_body.py",
    f"{_COLLECTOR}/intake/test_mux.py",
    f"{_COLLECTOR}/intake/test_mux_sdks.py",
    f"{_COLLECTOR}/received",
    f"{_APPLICATIONS}/alerts/test_alerts.py",
    f"{_APPLICATIONS}/api_baselines/test_api_baselines.py",
    f"{_APPLICATIONS}/api_schemas/test_api_schemas.py",
    f"{_APPLICATIONS}/recordings/test_recordings.py",
    f"{_APPLICATIONS}/traces/test_traces.py",
    f"{_APPLICATIONS}/users/test_users.py",
    f"{_APPLICATIONS}/video_views/test_real_players.py",
    f"{_APPLICATIONS}/video_views/test_views.py",
    f"{_APPLICATIONS}/video_views/live",
    f"{_APPLICATIONS}/video_views/plays/test_plays.py",
    f"{_APPLICATIONS}/video_views/row",
)
_RUN_SECONDS_MAX: Final = 600


#: A build that the C compiler need not make fast, for this run and for all until the code changes.
_FOLDER: Final = LOCAL / "compiled-for-tests"


@pytest.fixture(scope="module")
def compiled() -> Path:
    """A build of this code: that of `make compile`, or one of our own."""
    for folder in (build.FOLDER, _FOLDER):
        if build.is_current(folder):
            return folder
    build.build(_FOLDER, level="0")
    return _FOLDER


def run(*arguments: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_RUN_SECONDS_MAX,
        check=False,
    )


def written(file: Path, environ: dict[str, str]) -> dict[str, str]:
    """What the tests' cores commit, as a hash for each test."""
    options = (
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.compiled.written",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile=same",
    )
    # Some rows hold values in the order of a set of names, which differs with each process.
    ended = run(*options, *TESTS, environ=environ | {VARIABLE: str(file), "PYTHONHASHSEED": "0"})
    assert ended.returncode == 0, ended.stdout[-4_000:]
    found: dict[str, str] = json.loads(file.read_text())
    return found


def test_both_builds_pass_the_same_tests_and_commit_the_same_bytes(compiled: Path, tmp_path: Path) -> None:
    interpreted = written(tmp_path / "interpreted", {"PROCESSOR_COMPILED": "off"})
    other = written(tmp_path / "compiled", {"PROCESSOR_COMPILED": "required", "PROCESSOR_COMPILED_DIR": str(compiled)})
    assert len(interpreted) > 50
    assert interpreted.keys() == other.keys()
    assert [test for test, digest in interpreted.items() if digest != other[test]] == []


def test_every_module_of_a_build_is_the_compiled_one(compiled: Path) -> None:
    program = (
        "import importlib, os; from services.rim.process import compiled; print(compiled.choose('processor', os.environ));"
        "from deploy.compiled.modules import MODULES;"
        "print([name for name in MODULES if importlib.import_module(name).__file__.endswith('.py')])"
    )
    ended = run("-c", program, environ={"PROCESSOR_COMPILED_DIR": str(compiled)})
    assert ended.stdout.splitlines() == [f"Build(is_compiled=True, reason='{compiled}')", "[]"]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda build: build | {"code": "0" * 16}, "is made from other code"),
        (lambda build: build | {"suffix": ".cpython-39-other.so"}, "is made for .cpython-39-other.so"),
        (lambda build: build | {"library": "missing__mypyc"}, "missing__mypyc"),
    ],
)
def test_a_build_that_does_not_fit_is_not_used(compiled: Path, tmp_path: Path, spoil: object, reason: str) -> None:
    assert callable(spoil)
    for library in compiled.glob(f"*{SUFFIX}"):
        (tmp_path / library.name).symlink_to(library)
    (tmp_path / MANIFEST).write_text(json.dumps(spoil(json.loads((compiled / MANIFEST).read_text()))))
    settings = {"PROCESSOR_COMPILED_DIR": str(tmp_path)}
    chosen = "import os; from services.rim.process import compiled; print(compiled.choose('processor', os.environ))"
    ended = run("-c", chosen, environ=settings)
    assert ended.stdout.startswith("Build(is_compiled=False"), ended.stdout
    assert reason in ended.stdout
    # And where it is required, the service says why it does not start.
    for service in ("processor", "collector"):
        prefix = service.upper()
        required = {f"{prefix}_COMPILED": "required", f"{prefix}_COMPILED_DIR": str(tmp_path)}
        ended = run("-m", f"services.{service}", environ=required)
        assert ended.returncode == 2, ended.stdout
        assert ended.stdout.startswith(f"{service}: {prefix}_COMPILED=required: ")
        assert reason in ended.stdout
