"""Images are signed by digest, all or none begun; programs that note how they were called stand for docker and cosign."""

import stat
from pathlib import Path

import pytest

from deploy.images import sign
from deploy.images.build import SERVICES

REGISTRY = "registry.example.com/playhead"
DIGEST = "sha256:" + "a" * 64
DOCKER = f"""#!/bin/sh
# The image's name is the last argument; only pushed ones have a digest of this registry.
for name; do :; done
case "$name" in
  *playhead-query:9*) exit 1 ;;
  *playhead-query:8*) echo 'null' ;;
  *) echo "[\\"other.example.com/x@{DIGEST}\\",\\"${{name%:*}}@{DIGEST}\\"]" ;;
esac
"""
COSIGN = """#!/bin/sh
echo "$@" >> "$NOTED"
case "$*" in *playhead-$REFUSES@*) exit 1 ;; esac
"""


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("docker", DOCKER), ("cosign", COSIGN)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "cosign.key").write_text("a key")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("NOTED", str(tmp_path / "noted"))
    monkeypatch.setenv("REFUSES", "nothing")
    return tmp_path / "noted"


def test_every_services_image_is_signed_by_its_digest_in_the_registry(noted: Path) -> None:
    assert sign.main([REGISTRY, "--key", "cosign.key"]) == 0
    assert noted.read_text().splitlines() == [
        f"sign --yes --key cosign.key {REGISTRY}/playhead-{service}@{DIGEST}" for service in SERVICES
    ]


@pytest.mark.parametrize(("version", "what"), [("9", "docker has no image"), ("8", "no digest of its registry")])
def test_nothing_is_signed_when_one_image_is_not_pushed(
    noted: Path, version: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sign.main([REGISTRY, "--key", "cosign.key", "--version", version]) == 2
    assert what in capsys.readouterr().err
    assert not noted.exists()


def test_a_refusal_ends_it(noted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("REFUSES", SERVICES[1])
    assert sign.main([REGISTRY, "--key", "awskms:///alias/playhead"]) == 1
    assert len(noted.read_text().splitlines()) == 2
    assert f"playhead-{SERVICES[1]}@{DIGEST}" in capsys.readouterr().err


def test_what_is_missing_is_named(noted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sign.main([REGISTRY, "--key", "none.key"]) == 2
    assert "cosign generate-key-pair" in capsys.readouterr().err
    (noted.parent / "bin" / "cosign").unlink()
    assert sign.main([REGISTRY, "--key", "cosign.key"]) == 2
    assert "cosign is not installed" in capsys.readouterr().err
