"""The processor's applications by name, each made from its own settings."""

from collections.abc import Callable, Mapping
from typing import Final

from services.processor.applications.alerts import app as alerts
from services.processor.applications.alerts.settings import AlertsSettings
from services.processor.applications.api_baselines import app as api_baselines
from services.processor.applications.api_baselines.settings import BaselineRules
from services.processor.applications.api_schemas import app as api_schemas
from services.processor.applications.api_schemas.settings import SchemaRules
from services.processor.applications.recordings import app as recordings
from services.processor.applications.recordings.settings import SessionRules
from services.processor.applications.traces import app as traces
from services.processor.applications.traces.settings import TraceRules
from services.processor.applications.users import app as users
from services.processor.applications.users.settings import UserRules
from services.processor.applications.video_views import app as video_views
from services.processor.applications.video_views.settings import VideoViewsSettings
from services.processor.engine.application.application import Application
from services.processor.settings import ApplicationName
from shared.settings import SettingsGroup


def _video_views(environ: Mapping[str, str]) -> Application:
    settings = VideoViewsSettings.load(environ)
    return video_views.application(
        settings.finish_rules(),
        settings.good_rules(),
        tuple(name for name in settings.live_dimensions.split(",") if name),
        exports_protobuf=settings.export_protobuf,
        generation=settings.generation,
    )


#: What `PROCESSOR_APPLICATION` chooses from: each is made from its own settings, and may raise `SettingsError`.
APPLICATIONS: Final[dict[ApplicationName, Callable[[Mapping[str, str]], Application]]] = {
    "video_views": _video_views,
    "traces": lambda environ: traces.application(TraceRules.load(environ)),
    "api_schemas": lambda environ: api_schemas.application(SchemaRules.load(environ)),
    "recordings": lambda environ: recordings.application(SessionRules.load(environ)),
    "api_baselines": lambda environ: api_baselines.application(BaselineRules.load(environ)),
    "users": lambda environ: users.application(UserRules.load(environ)),
    "alerts": lambda environ: alerts.application(AlertsSettings.load(environ)),
}

#: The settings of each application.
SETTINGS: Final[dict[ApplicationName, type[SettingsGroup]]] = {
    "video_views": VideoViewsSettings,
    "traces": TraceRules,
    "api_schemas": SchemaRules,
    "recordings": SessionRules,
    "api_baselines": BaselineRules,
    "users": UserRules,
    "alerts": AlertsSettings,
}
