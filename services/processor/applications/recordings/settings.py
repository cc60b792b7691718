"""Settings of application `recordings`: how long parts of a session are waited for, and how many are kept."""

from typing import ClassVar

import pydantic

from shared.chunks import BETWEEN_CHUNKS_SECONDS_MAX
from shared.settings import SettingsGroup


class SessionRules(SettingsGroup):
    """How long things are waited for, and how many are kept."""

    PREFIX: ClassVar[str] = "RECORDINGS_"

    gap_ms: int = pydantic.Field(
        default=300_000, ge=0, le=86_400_000, description="how long a missing payload holds back those after it"
    )
    upload_ms: int = pydantic.Field(
        default=3_600_000,
        ge=2_000 * BETWEEN_CHUNKS_SECONDS_MAX,
        le=86_400_000,
        description="silence after which an unfinished upload is forgotten",
    )
    kept_ms: int = pydantic.Field(
        default=7 * 86_400_000,
        ge=60_000,
        le=31_622_400_000,
        description="silence after which a session is forgotten: no lookups, no duplicate detection",
    )
    uploads_max: int = pydantic.Field(
        default=100,
        ge=1,
        le=100,
        description="unfinished uploads of one session; one more drops the one that is silent for longest",
    )
    waiting_max: int = pydantic.Field(
        default=500, ge=1, le=1_000, description="complete payloads behind a gap; one more ends the wait for the gap"
    )
