"""The settings of notifications, from the environment."""

from typing import ClassVar, Literal

import pydantic

from services.rim.database.postgres import Dsn
from shared.settings import Settings


class NotificationsSettings(Settings):
    """Postgres, attempts, the mail server, and the session in the group."""

    PREFIX: ClassVar[str] = "NOTIFICATIONS_"

    postgres_dsn: Dsn = pydantic.Field(
        description="postgresql://... of the accounts' database, which has schema alerts"
    )
    page_url: str = pydantic.Field(
        default="http://localhost:8090",
        pattern=r"https?://[^\s@/?#]+",
        description="how browsers reach the page; messages link to it",
    )
    smtp_host: str = pydantic.Field(default="", description="mail server; without one no e-mail is sent")
    smtp_port: int = pydantic.Field(default=587, ge=1, le=65535, description="port of the mail server")
    smtp_security: Literal["starttls", "tls", "none"] = pydantic.Field(
        default="starttls", description="how the connection is secured; a certificate that does not verify ends it"
    )
    smtp_user: str = pydantic.Field(default="", description="login at the mail server; empty: none")
    smtp_password: pydantic.SecretStr | None = pydantic.Field(default=None, description="password at the mail server")
    smtp_from: str = pydantic.Field(
        default="Playhead <playhead@localhost>", pattern=r"[^\r\n]{3,200}", description="sender of e-mails"
    )
    private_receivers: bool = pydantic.Field(
        default=False,
        description="whether receivers may have addresses of private networks; otherwise they are refused",
    )
    attempts_max: int = pydantic.Field(
        default=24, ge=1, le=100, description="attempts at a message, for an hour at the least; then it is dead"
    )
    backoff_ms: int = pydantic.Field(
        default=1_000,
        ge=1,
        le=60_000,
        description="longest wait after the first attempt, the shortest is half of it; it doubles",
    )
    backoff_ms_max: int = pydantic.Field(
        default=600_000, ge=1, le=3_600_000, description="longest wait after any attempt"
    )
    answer_ms_max: int = pydantic.Field(
        default=10_000, ge=100, le=60_000, description="time for a receiver to answer one attempt"
    )
    messages_max: int = pydantic.Field(default=50, ge=1, le=1_000, description="messages that are sent at a time")
    session_ms: int = pydantic.Field(
        default=10_000,
        ge=1_000,
        le=300_000,
        description="silence after which a process loses its partitions to the others",
    )
    postgres_connections_max: int = pydantic.Field(
        default=4, ge=1, le=100, description="connections to Postgres at a time"
    )
    admin_host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of health and metrics; 0.0.0.0 in a container"
    )
    admin_port: int = pydantic.Field(default=9108, ge=0, le=65535, description="port of health and metrics")
