"""Settings of application `alerts`."""

from typing import ClassVar

import pydantic

from shared.settings import SettingsGroup


class AlertsSettings(SettingsGroup):
    """How long a bucket waits for the partitions that have not reported it."""

    PREFIX: ClassVar[str] = "ALERTS_"

    grace_ms: int = pydantic.Field(
        default=5_000,
        ge=100,
        le=60_000,
        description="time after a bucket's end, or its first report, in which partitions that are expected may report it",
    )
