"""Settings of application `traces`: how long the spans of a trace are joined, and how many."""

from typing import ClassVar, Final

import pydantic

from services.processor.engine.windows import Sessions
from shared.settings import SettingsGroup

#: With its critical path a trace must fit into one record.
SPANS_MAX: Final = 2_000


class TraceRules(SettingsGroup):
    """A part of a trace ends after `gap_ms` of silence, is closed `grace_ms` later, and is forgotten after `kept_ms`."""

    PREFIX: ClassVar[str] = "TRACES_"

    gap_ms: int = pydantic.Field(
        default=5_000, ge=0, le=3_600_000, description="silence after which a trace is published"
    )
    grace_ms: int = pydantic.Field(
        default=60_000, ge=0, le=86_400_000, description="time after that in which later spans still revise it"
    )
    kept_ms: int = pydantic.Field(
        default=900_000,
        ge=0,
        le=86_400_000,
        description="time after that in which lookups find it and long spans still join it",
    )
    spans_max: int = pydantic.Field(default=SPANS_MAX, ge=1, le=SPANS_MAX, description="spans of one trace")
    span_bytes_max: int = pydantic.Field(
        default=500_000, ge=1_000, le=500_000, description="size of their records together"
    )

    @property
    def sessions(self) -> Sessions:
        """The windows that parts are."""
        return Sessions(self.gap_ms, self.grace_ms)
