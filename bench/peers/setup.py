"""Sets up the peers, with which the benchmarks compare Playhead, under `.local/bench`. Versions are pinned; each is built once."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bench.report.results import HOME

_PEERS: Final = Path(__file__).parent
_SECONDS_MAX: Final = 900.0


class PeerMissing(RuntimeError):
    """A peer cannot be set up here; the text says what to install."""


def kafka_streams() -> tuple[Path, Path]:
    """The folders of its jars and of its classes."""
    folder = _once("kafka_streams", _streams)
    return folder / "jars", folder / "classes"


def quix_python() -> Path:
    """The interpreter of its environment."""
    return _once("quix", _quix) / "bin" / "python"


def go_collector() -> Path:
    """The program."""
    return _once("go_collector", _go) / "collector"


def rust_collector() -> Path:
    """The program."""
    return _once("rust_collector", _rust) / "release" / "collector"


def _once(name: str, make: Callable[[Path, Path], None]) -> Path:
    """The folder in which a peer was made, from its sources as they are now."""
    sources, folder = _PEERS / name, HOME / name
    files = sorted(file for file in sources.rglob("*") if file.is_file() and file.name != "Cargo.lock")
    stamp = folder / f"made-{hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()[:16]}"
    if not stamp.exists():
        print(f"setting up {name} (once)", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(sources, folder)
        stamp.touch()
    return folder


def _streams(sources: Path, folder: Path) -> None:
    jars = folder / "jars"
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    _run("mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", "--file", str(sources / "pom.xml"), *copy)
    classes = [str(file) for file in sorted(sources.glob("*.java"))]
    _run("javac", "-d", str(folder / "classes"), "-cp", f"{jars}/*", *classes)


def _quix(sources: Path, folder: Path) -> None:
    _run(sys.executable, "-m", "venv", str(folder))
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run(*pip, "-r", str(sources / "requirements.txt"))


def _go(sources: Path, folder: Path) -> None:
    _run("go", "build", "-C", str(sources), "-o", str(folder / "collector"), ".")


def _rust(sources: Path, folder: Path) -> None:
    manifest = str(sources / "Cargo.toml")
    _run(
        "cargo", "build", "--quiet", "--release", "--manifest-path", manifest, environ={"CARGO_TARGET_DIR": str(folder)}
    )


def _run(*command: str, environ: Mapping[str, str] | None = None) -> None:
    if shutil.which(command[0]) is None:
        raise PeerMissing(f"{command[0]} is needed to build this peer; install it, or leave the peer out with --only")
    subprocess.run(command, check=True, timeout=_SECONDS_MAX, env={**os.environ, **(environ or {})})
