"""When a process's certificates expire. Read at each scrape of the metrics, so that a renewed certificate is seen at once."""

from functools import partial
from pathlib import Path

from cryptography import x509

from services.rim.telemetry.metrics import gauge
from shared.metrics import CERTIFICATE_END_SECONDS


def watch(*files: Path) -> None:
    """From now on metrics report the certificates in these PEM files, by the file's name."""
    for file in files:
        gauge(CERTIFICATE_END_SECONDS).labels(file.name).set_function(partial(end_seconds, file))


def end_seconds(file: Path) -> float:
    """When the first certificate of a PEM file runs out, seconds since 1970; 0 (long ago) for a file without a readable one."""
    try:
        certificates = x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError):
        return 0.0
    return min(one.not_valid_after_utc.timestamp() for one in certificates)
