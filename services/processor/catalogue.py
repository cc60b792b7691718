"""The processor's applications by name, each made from its own settings."""

from collections.abc import Callable, Mapping
from typing import Final

from services.processor.applications.api_baselines import app as api_baselines
from services.processor.applications.api_baselines.endpoint import BaselineRules
from services.processor.applications.api_schemas import app as api_schemas
from services.processor.applications.recordings import app as recordings
from services.processor.applications.recordings.session import SessionRules
from services.processor.applications.traces import app as traces
from services.processor.applications.traces.trace import TraceRules
from services.processor.applications.users import app as users
from services.processor.applications.users.outcomes import KeepRules
from services.processor.applications.video_views import app as video_views
from services.processor.applications.video_views.row.scores import GoodRules
from services.processor.applications.video_views.view.finish import FinishRules
from services.processor.engine.application.application import Application
from services.processor.settings import (
    ApiBaselinesSettings,
    ApiSchemasSettings,
    ApplicationName,
    RecordingsSettings,
    TracesSettings,
    UsersSettings,
    VideoViewsSettings,
)


def _video_views(environ: Mapping[str, str]) -> Application:
    told = VideoViewsSettings.load(environ)
    return video_views.application(
        FinishRules(
            clean_ms=told.finish_clean_ms,
            ended_ms=told.finish_ended_ms,
            silent_ms=told.finish_silent_ms,
            paused_ms=told.finish_paused_ms,
            view_max_ms=told.view_max_ms,
            lateness_ms=told.lateness_ms,
            closed_ms=told.closed_ms,
            live_silence_ms=told.live_silence_ms,
        ),
        GoodRules(
            startup_ms_max=told.good_startup_ms_max,
            rebuffer_share_max=told.good_rebuffer_share_max,
            bitrate_bps_min=told.good_bitrate_bps_min,
            exit_wait_ms_min=told.good_exit_wait_ms_min,
        ),
        tuple(name for name in told.live_dimensions.split(",") if name),
        exports_protobuf=told.export_protobuf,
        generation=told.generation,
    )


def _traces(environ: Mapping[str, str]) -> Application:
    told = TracesSettings.load(environ)
    return traces.application(
        TraceRules(
            gap_ms=told.gap_ms,
            grace_ms=told.grace_ms,
            kept_ms=told.kept_ms,
            spans_max=told.spans_max,
            span_bytes_max=told.span_bytes_max,
        )
    )


def _api_schemas(environ: Mapping[str, str]) -> Application:
    told = ApiSchemasSettings.load(environ)
    return api_schemas.application(
        api_schemas.SchemaRules(learning_ms=told.learning_ms, kept_ms=told.kept_ms, endpoints_max=told.endpoints_max)
    )


def _recordings(environ: Mapping[str, str]) -> Application:
    told = RecordingsSettings.load(environ)
    return recordings.application(
        SessionRules(
            gap_ms=told.gap_ms,
            upload_ms=told.upload_ms,
            kept_ms=told.kept_ms,
            uploads_max=told.uploads_max,
            waiting_max=told.waiting_max,
        )
    )


def _api_baselines(environ: Mapping[str, str]) -> Application:
    told = ApiBaselinesSettings.load(environ)
    return api_baselines.application(
        BaselineRules(
            window_ms=told.window_ms,
            grace_ms=told.grace_ms,
            usual_windows_min=told.usual_windows_min,
            usual_windows_max=told.usual_windows_max,
            closing_windows=told.closing_windows,
            anomaly_ms_max=told.anomaly_ms_max,
            kept_ms=told.kept_ms,
            endpoints_max=told.endpoints_max,
        )
    )


def _users(environ: Mapping[str, str]) -> Application:
    told = UsersSettings.load(environ)
    kept = KeepRules(keyed_ms=told.idempotency_ms, unkeyed_ms=told.outcome_ms, outcomes_max=told.outcomes_max)
    return users.application(users.UserRules(kept, claim_retry_ms=told.claim_retry_ms))


#: What `PROCESSOR_APPLICATION` chooses from: each is made from its own settings, and may raise `SettingsError`.
APPLICATIONS: Final[dict[ApplicationName, Callable[[Mapping[str, str]], Application]]] = {
    "video_views": _video_views,
    "traces": _traces,
    "api_schemas": _api_schemas,
    "recordings": _recordings,
    "api_baselines": _api_baselines,
    "users": _users,
}
