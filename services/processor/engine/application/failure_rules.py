"""FailureRules: when a key is quarantined, and when a release counts as broken."""

from typing import ClassVar, Final

import pydantic

from shared.settings import SettingsGroup

#: Keys with recent failures of which a partition keeps count. With more, the one that failed longest ago is forgotten.
FAILING_KEYS_MAX: Final = 256


class FailureRules(SettingsGroup):
    """When a key is quarantined, and when a release counts as broken. A partition applies them to itself alone."""

    PREFIX: ClassVar[str] = "PROCESSOR_"

    quarantine_failures: int = pydantic.Field(
        default=10, ge=1, le=1_000, description="failing records and rows of one key after which it is quarantined"
    )
    quarantine_window_records: int = pydantic.Field(
        default=10_000,
        ge=1,
        le=1_000_000_000,
        description="records of a partition between two failures of a key that count together",
    )
    quarantined_keys_max: int = pydantic.Field(
        default=1_000,
        ge=0,
        le=10_000,
        description="quarantined keys of one partition; of one more key each failing record is rejected",
    )
    quarantined_bytes_max: int = pydantic.Field(
        default=64 * 1024 * 1024, ge=0, le=2**40, description="rows of a partition's quarantined keys"
    )
    broken_release_keys: int = pydantic.Field(
        default=50,
        ge=0,
        le=200,
        description="distinct keys of a partition that fail after an upgrade before the slot ends; 0: never",
    )
    broken_release_records: int = pydantic.Field(
        default=10_000,
        ge=1,
        le=1_000_000_000,
        description="records of a partition after an upgrade in which these keys are counted",
    )


DEFAULT_RULES: Final = FailureRules()
