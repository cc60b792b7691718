"""Settings of application `api_schemas`: how long an endpoint is learned and kept."""

from typing import ClassVar

import pydantic

from shared.settings import SettingsGroup


class SchemaRules(SettingsGroup):
    """How long an endpoint is learned before its schema is published, and how long an unused one is kept."""

    PREFIX: ClassVar[str] = "API_SCHEMAS_"

    learning_ms: int = pydantic.Field(
        default=3_600_000, ge=0, le=31_622_400_000, description="time before an endpoint's schema is published"
    )
    kept_ms: int = pydantic.Field(
        default=90 * 86_400_000,
        ge=60_000,
        le=31_622_400_000,
        description="time without calls after which an endpoint is forgotten",
    )
    endpoints_max: int = pydantic.Field(default=500, ge=1, le=2_000, description="endpoints of one API")
