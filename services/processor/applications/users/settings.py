"""Settings of application `users`: how long and how many outcomes of requests are kept."""

from typing import ClassVar

import pydantic

from shared.settings import SettingsGroup


class UserRules(SettingsGroup):
    """Times are ms of the partition's clock."""

    PREFIX: ClassVar[str] = "USERS_"

    idempotency_ms: int = pydantic.Field(
        default=86_400_000,
        ge=1_000,
        le=30 * 86_400_000,
        description="time in which an idempotency key names the same request",
    )
    outcome_ms: int = pydantic.Field(
        default=60_000, ge=10_000, le=3_600_000, description="how long the outcome of a request without a key is kept"
    )
    outcomes_max: int = pydantic.Field(
        default=100_000, ge=10_000, le=10_000_000, description="outcomes of one partition"
    )
    claim_retry_ms: int = pydantic.Field(
        default=30_000,
        ge=1_000,
        le=3_600_000,
        description="a claim or release of an e-mail address is repeated this often",
    )
