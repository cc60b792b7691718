"""Metrics of disks and certificates are computed when they are read."""

import datetime as dt
import shutil
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from prometheus_client import REGISTRY

from services.rim.telemetry import certificates, disks

END = dt.datetime(2031, 5, 6, 7, 8, 9, tzinfo=dt.UTC)


def certificate(end: dt.datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7)
    builder = builder.not_valid_before(end - dt.timedelta(days=90)).not_valid_after(end)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def sample(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_a_folder_that_is_not_made_yet_lies_on_the_disk_of_the_one_above(tmp_path: Path) -> None:
    disks.watch("later", tmp_path / "not" / "yet")

    assert sample("playhead_disk_bytes", folder="later") == shutil.disk_usage(tmp_path).total
    assert (sample("playhead_disk_free_bytes", folder="later") or 0) > 0


def test_a_disk_that_cannot_be_read_is_not_reported_as_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(shutil, "disk_usage", broken)
    disks.watch("broken", tmp_path)

    free = sample("playhead_disk_free_bytes", folder="broken")
    assert free is not None
    assert free != free  # noqa: PLR0124 - NaN


def test_the_end_of_the_first_certificate_to_run_out_is_reported_and_a_renewed_one_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "tls.crt"
    file.write_bytes(certificate(END + dt.timedelta(days=9)) + certificate(END))
    certificates.watch(read_again=[file])

    assert sample("playhead_certificate_end_seconds", file="tls.crt") == END.timestamp()
    file.write_bytes(certificate(END + dt.timedelta(days=1)))
    assert sample("playhead_certificate_end_seconds", file="tls.crt") == END.timestamp() + 86_400


def test_a_certificate_that_is_read_at_the_start_alone_keeps_its_end_when_its_file_is_renewed(tmp_path: Path) -> None:
    file, other = tmp_path / "ca.crt", tmp_path / "other" / "ca.crt"
    other.parent.mkdir()
    other.write_bytes(certificate(END + dt.timedelta(days=900)))
    file.write_bytes(certificate(END))
    # Of two files of one name, the one that a restart has to renew.
    certificates.watch(file, read_again=[other])

    file.write_bytes(certificate(END + dt.timedelta(days=365)))
    assert sample("playhead_certificate_end_seconds", file="ca.crt") == END.timestamp()
    # The next start would read this one.
    file.write_bytes(certificate(END - dt.timedelta(days=1)))
    assert sample("playhead_certificate_end_seconds", file="ca.crt") == END.timestamp() - 86_400


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n"])
def test_a_certificate_that_cannot_be_read_has_ended_long_ago(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "tls.crt"
    if content is not None:
        file.write_bytes(content)

    assert certificates.end_seconds(file) == 0
