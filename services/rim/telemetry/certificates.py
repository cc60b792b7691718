"""When a process's certificates expire. Their files are read at each scrape of the metrics."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from cryptography import x509

from services.rim.telemetry.metrics import gauge
from shared.metrics import CERTIFICATE_END_SECONDS


def watch(*files: Path, read_again: Iterable[Path] = ()) -> None:
    """From now on metrics report the certificates in these PEM files, by the file's name.

    What the process has read at its start it holds until its end: a file that is renewed later is not what it trusts. Files in
    `read_again` are read for each new connection, and reported as they are.
    """
    for file in read_again:
        gauge(CERTIFICATE_END_SECONDS).labels(file.name).set_function(partial(end_seconds, file))
    for file in files:
        gauge(CERTIFICATE_END_SECONDS).labels(file.name).set_function(partial(_first_end, file, end_seconds(file)))


def _first_end(file: Path, held_seconds: float) -> float:
    return min(held_seconds, end_seconds(file))


def end_seconds(file: Path) -> float:
    """When the first certificate of a PEM file runs out, seconds since 1970; 0 (long ago) for a file without a readable one."""
    try:
        certificates = x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError):
        return 0.0
    return min(one.not_valid_after_utc.timestamp() for one in certificates)
