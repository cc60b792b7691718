"""Settings of application `api_baselines`: windows, baselines and anomalies."""

from typing import ClassVar, Self

import pydantic

from shared.settings import SettingsGroup


class BaselineRules(SettingsGroup):
    """How long windows are, what is usual, and when an anomaly is over."""

    PREFIX: ClassVar[str] = "API_BASELINES_"

    window_ms: int = pydantic.Field(default=300_000, ge=1_000, le=3_600_000, description="length of a window")
    grace_ms: int = pydantic.Field(
        default=60_000, ge=0, le=3_600_000, description="time after a window's end in which its calls still count"
    )
    silence_ms: int = pydantic.Field(
        default=900_000,
        ge=0,
        le=86_400_000,
        description="time without any call in a partition before its windows close all the same",
    )
    usual_windows_min: int = pydantic.Field(
        default=24,
        ge=8,
        le=500,
        description="windows of the same hour that make a baseline; fewer: the endpoint is learned",
    )
    usual_windows_max: int = pydantic.Field(
        default=100, ge=8, le=500, description="windows of the same hour that are stored"
    )
    closing_windows: int = pydantic.Field(
        default=3, ge=1, le=100, description="usual windows in a row that close an anomaly"
    )
    anomaly_ms_max: int = pydantic.Field(
        default=86_400_000,
        ge=60_000,
        le=31_622_400_000,
        description="longest anomaly: after this the endpoint is learned from the beginning",
    )
    kept_ms: int = pydantic.Field(
        default=14 * 86_400_000,
        ge=60_000,
        le=31_622_400_000,
        description="time without calls after which an endpoint is forgotten",
    )
    endpoints_max: int = pydantic.Field(default=500, ge=1, le=2_000, description="endpoints of one API")

    @pydantic.model_validator(mode="after")
    def _enough_is_stored(self) -> Self:
        if self.usual_windows_max < self.usual_windows_min:
            raise ValueError("API_BASELINES_USUAL_WINDOWS_MAX must be no less than API_BASELINES_USUAL_WINDOWS_MIN")
        return self
