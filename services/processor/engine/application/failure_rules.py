"""FailureRules: when a key is quarantined, and when a release counts as broken."""

from dataclasses import dataclass
from typing import Final

#: Keys with recent failures of which a partition keeps count. With more, the one that failed longest ago is forgotten.
FAILING_KEYS_MAX: Final = 256


@dataclass(frozen=True)
class FailureRules:
    """When a key is quarantined, and when a release counts as broken. A partition applies them to itself alone."""

    #: A key is quarantined when so many of its records and rows have failed ...
    quarantine_failures: int = 10
    #: ... and between two of these the partition has folded no more records than this.
    window_records: int = 10_000
    #: Quarantined keys of a partition, and the bytes of their rows. Of one more key, each failing record is rejected.
    quarantined_keys_max: int = 1_000
    quarantined_bytes_max: int = 64 * 1024 * 1024
    #: The slot ends when more distinct keys than this have failed ... 0: it never ends for failures.
    broken_release_keys: int = 50
    #: ... within so many records of a partition after the application's version has changed.
    broken_release_records: int = 10_000


DEFAULT_RULES: Final = FailureRules()
