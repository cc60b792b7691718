"""Builds an overlay as `kubectl apply -k` would: `python -m deploy.kubernetes.manifests OVERLAY` prints it."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.local.paths import LOCAL

FOLDER: Final = Path(__file__).parent
OVERLAYS: Final = (
    "staging",
    "production",
    "production-spool",
    "production-lag-scaling",
    "production-ingress",
    "production-applications",
)
_SECONDS_MAX: Final = 120


class ManifestsWrong(RuntimeError):
    """kustomize cannot build an overlay, or is not there; the text says which and why."""


def build(overlay: str) -> list[dict[str, Any]]:
    """Every object of an overlay."""
    return [each for each in yaml.safe_load_all(text(overlay)) if each is not None]


def text(overlay: str) -> str:
    """The overlay as YAML. Raises `ManifestsWrong`."""
    return built(FOLDER / "overlays" / overlay)


def built(folder: Path) -> str:
    """What kustomize makes of a folder, as YAML. Raises `ManifestsWrong`."""
    run = subprocess.run(
        [*_kustomize(), str(folder)],
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )
    if run.returncode != 0:
        raise ManifestsWrong(f"{folder.name}: {run.stderr.strip()}")
    return run.stdout


def _kustomize() -> list[str]:
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    own = shutil.which("kustomize") or shutil.which("kustomize", path=str(LOCAL / "bin"))
    if own is None:
        raise ManifestsWrong("kubectl or kustomize is needed: `make setup-test` finds or builds it")
    return [own, "build"]


if __name__ == "__main__":
    if sys.argv[1:] not in [[overlay] for overlay in OVERLAYS]:
        sys.exit(f"usage: python -m deploy.kubernetes.manifests {'|'.join(OVERLAYS)}")
    print(text(sys.argv[1]), end="")
