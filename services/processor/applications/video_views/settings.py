"""Settings of application `video_views`. Defaults of rules stand where the rules are."""

from typing import ClassVar, Final

import pydantic

from services.processor.applications.video_views.row.scores import GoodRules
from services.processor.applications.video_views.view.finish_rules import FinishRules
from shared.schemas.live import DIMENSIONS
from shared.settings import SettingsGroup

_SLICED: Final = f"({'|'.join(DIMENSIONS)})"


class VideoViewsSettings(SettingsGroup):
    """When a view finishes, what a good view is, and what is published of it."""

    PREFIX: ClassVar[str] = "VIDEO_VIEWS_"

    finish_clean_ms: int = pydantic.Field(
        default=FinishRules.clean_ms, ge=0, le=31_622_400_000, description="silence after the player's closing event"
    )
    finish_ended_ms: int = pydantic.Field(
        default=FinishRules.ended_ms,
        ge=0,
        le=31_622_400_000,
        description="silence after the video's end or a fatal error, without a closing event",
    )
    finish_silent_ms: int = pydantic.Field(
        default=FinishRules.silent_ms,
        ge=1_000,
        le=31_622_400_000,
        description="silence while starting, playing, rebuffering or seeking",
    )
    finish_paused_ms: int = pydantic.Field(
        default=FinishRules.paused_ms, ge=1_000, le=31_622_400_000, description="silence while paused or not started"
    )
    view_max_ms: int = pydantic.Field(
        default=FinishRules.view_max_ms,
        ge=1_000,
        le=31_622_400_000,
        description="interval between two rows of a view that continues, 1 min at least",
    )
    lateness_ms: int = pydantic.Field(
        default=FinishRules.lateness_ms,
        ge=0,
        le=31_622_400_000,
        description="time after the finish in which a beacon still revises the view",
    )
    closed_ms: int = pydantic.Field(
        default=FinishRules.closed_ms,
        ge=0,
        le=31_622_400_000,
        description="time after that in which its beacons are recognised as late",
    )
    live_silence_ms: int = pydantic.Field(
        default=FinishRules.live_silence_ms,
        ge=1_000,
        le=31_622_400_000,
        description="silence after which a view leaves the live gauges",
    )
    good_startup_ms_max: int = pydantic.Field(
        default=GoodRules.startup_ms_max, ge=0, le=3_600_000, description="a good view starts within this"
    )
    good_rebuffer_share_max: float = pydantic.Field(
        default=GoodRules.rebuffer_share_max,
        ge=0,
        le=1,
        description="rebuffering of a good view, as a share of its watch time",
    )
    good_bitrate_bps_min: int = pydantic.Field(
        default=GoodRules.bitrate_bps_min,
        ge=0,
        le=10_000_000_000,
        description="average bitrate of a good view while playing",
    )
    good_exit_wait_ms_min: int = pydantic.Field(
        default=GoodRules.exit_wait_ms_min,
        ge=0,
        le=3_600_000,
        description="an exit before the start after this wait is bad",
    )
    live_dimensions: str = pydantic.Field(
        default="cdn,country,asn,device,player_version,video_title,stream_type",
        pattern=rf"^({_SLICED}(,{_SLICED}){{0,7}})?$",
        description="fields of the row by which live gauges are sliced, and by each pair of them; at most eight",
    )
    generation: int = pydantic.Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="generation of the rows: raise it when their meaning changes, see docs/reprocessing.md",
    )
    export_protobuf: bool = pydantic.Field(
        default=False, description="also write rows to topic views.protobuf, as Mux's VideoView messages"
    )

    def finish_rules(self) -> FinishRules:
        """When a view finishes, and how long it is remembered after that."""
        return FinishRules(
            clean_ms=self.finish_clean_ms,
            ended_ms=self.finish_ended_ms,
            silent_ms=self.finish_silent_ms,
            paused_ms=self.finish_paused_ms,
            view_max_ms=self.view_max_ms,
            lateness_ms=self.lateness_ms,
            closed_ms=self.closed_ms,
            live_silence_ms=self.live_silence_ms,
        )

    def good_rules(self) -> GoodRules:
        """What a good view is."""
        return GoodRules(
            startup_ms_max=self.good_startup_ms_max,
            rebuffer_share_max=self.good_rebuffer_share_max,
            bitrate_bps_min=self.good_bitrate_bps_min,
            exit_wait_ms_min=self.good_exit_wait_ms_min,
        )
