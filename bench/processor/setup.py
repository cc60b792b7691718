"""Sets the peers up under `.local/bench`: jars and classes of Kafka Streams, an environment for Quix Streams. Pinned; once."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.processor.systems import Peers

_ROOT: Final = Path(__file__).parents[2]
_PEERS: Final = _ROOT / "bench" / "peers"
_HOME: Final = _ROOT / ".local" / "bench"
_SECONDS_MAX: Final = 900.0


def set_up(families: set[str]) -> Peers:
    """Fetches and builds what the systems of these families need and is not there yet. Raises `CalledProcessError`."""
    streams, quix = _HOME / "kafka_streams", _HOME / "quix"
    if "kafka streams" in families:
        _once(streams, [_PEERS / "kafka_streams" / "pom.xml", _PEERS / "kafka_streams" / "ReducedViews.java"], _streams)
    if "quix" in families:
        _once(quix, [_PEERS / "quix" / "requirements.txt"], _quix)
    return Peers(streams / "jars", streams / "classes", quix / "bin" / "python")


def _once(folder: Path, sources: list[Path], make: Callable[[Path, list[Path]], None]) -> None:
    stamp = folder / f"made-{hashlib.sha256(b''.join(source.read_bytes() for source in sources)).hexdigest()[:16]}"
    if stamp.exists():
        return
    print(f"setting up {folder.name} (once)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make(folder, sources)
    stamp.touch()


def _streams(folder: Path, sources: list[Path]) -> None:
    pom, java = sources
    jars = folder / "jars"
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    _run("mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", "--file", str(pom), *copy)
    _run("javac", "-d", str(folder / "classes"), "-cp", f"{jars}/*", str(java))


def _quix(folder: Path, sources: list[Path]) -> None:
    _run(sys.executable, "-m", "venv", str(folder))
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run(*pip, "-r", str(sources[0]))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=_SECONDS_MAX)
