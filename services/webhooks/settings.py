"""The settings of webhooks, from the environment."""

import re
from typing import Annotated, ClassVar

import pydantic

from shared.settings import Settings


def _checked(address: pydantic.SecretStr) -> pydantic.SecretStr:
    if not re.match(r"https?://[^\s/]", address.get_secret_value()):
        raise ValueError("it must begin with http:// or https:// and a host")
    return address


_Address = Annotated[pydantic.SecretStr, pydantic.AfterValidator(_checked)]


class WebhooksSettings(Settings):
    """The receiver, the number and time of attempts, the limit of pending messages, and the session in the group."""

    PREFIX: ClassVar[str] = "WEBHOOKS_"

    url: _Address = pydantic.Field(
        description="the receiver, as https://host/path; it may hold a token, so it is a secret"
    )
    secret: pydantic.SecretStr = pydantic.Field(
        min_length=16,
        description="secret with which messages are signed: text, or whsec_ and base64, as receivers have it",
    )
    attempts_max: int = pydantic.Field(
        default=8, ge=1, le=20, description="attempts after which a message is written to topic webhooks_failed"
    )
    backoff_ms: int = pydantic.Field(
        default=1_000, ge=1, le=60_000, description="longest wait after the first attempt; it doubles with each attempt"
    )
    backoff_ms_max: int = pydantic.Field(
        default=300_000, ge=1, le=3_600_000, description="longest wait after any attempt"
    )
    answer_ms_max: int = pydantic.Field(
        default=10_000, ge=100, le=60_000, description="time for the receiver to answer one attempt"
    )
    pending_max: int = pydantic.Field(
        default=1_000, ge=1, le=100_000, description="messages read and not yet delivered"
    )
    session_ms: int = pydantic.Field(
        default=10_000,
        ge=1_000,
        le=300_000,
        description="silence after which a process loses its partitions to the others",
    )
    drain_seconds_max: float = pydantic.Field(
        default=5.0, gt=0, le=60, description="seconds for messages in delivery after SIGTERM"
    )
    admin_host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of health and metrics; 0.0.0.0 in a container"
    )
    admin_port: int = pydantic.Field(default=9105, ge=0, le=65535, description="port of health and metrics")
