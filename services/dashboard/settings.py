"""The dashboard's settings and limits, from the environment: `DASHBOARD_PORT`, `DASHBOARD_POSTGRES_DSN` and so on."""

from typing import ClassVar, Self

import pydantic

from services.accounts.credential_queue import AT_ONCE_MAX
from services.accounts.settings import AccountsSettings
from services.rim.database.postgres import Dsn


class DashboardSettings(AccountsSettings):
    """What the dashboard reads besides the common settings."""

    PREFIX: ClassVar[str] = "DASHBOARD_"

    host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of the page; 0.0.0.0 in a container or behind a proxy"
    )
    port: int = pydantic.Field(default=8090, ge=0, le=65535, description="port of the page")
    admin_host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of health and metrics; 0.0.0.0 in a container"
    )
    admin_port: int = pydantic.Field(default=9104, ge=0, le=65535, description="port of health and metrics")

    customers_dsn: Dsn | None = pydantic.Field(
        default=None,
        description="postgresql://... of the customers' database, if it is not the serving one; for /limits",
    )
    #: Look-ups of credentials that anybody may send leave one to callers who are known.
    postgres_connections_max: int = pydantic.Field(
        default=AT_ONCE_MAX + 1, ge=AT_ONCE_MAX + 1, le=100, description="connections to Postgres at a time"
    )
    query_seconds_max: float = pydantic.Field(
        default=5.0,
        gt=0,
        le=60,
        description="seconds without an answer after which the page shows that Postgres is away",
    )

    oidc_issuer: str = pydantic.Field(
        default="",
        pattern=r"(https://[^\s@?#]+|http://(localhost|127\.0\.0\.1)(:\d+)?(/[^\s@?#]*)?)?",
        description="issuer URL of an OpenID provider at which people log in too; it needs a public URL",
    )
    oidc_client_id: str = pydantic.Field(default="", description="client id of this dashboard at the provider")
    oidc_client_secret: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=16, description="client secret of this dashboard at the provider"
    )
    oidc_name: str = pydantic.Field(
        default="single sign-on", max_length=60, description="name of the provider on the login page"
    )

    query_url: str = pydantic.Field(
        default="",
        pattern=r"(https?://[^\s@]+)?",
        description="where the service query answers: http://query:8093; without it there are no questions under /v1",
    )
    query_wait_seconds_max: float = pydantic.Field(
        default=30.0, gt=0, le=600, description="seconds without a byte of its answer, after which it counts as away"
    )

    lookup_url: str = pydantic.Field(
        default="",
        pattern=r"(https?://[^\s@]+)?",
        description="where lookups of any processor slot answer; without it and its token no single view can be shown",
    )
    lookup_token: pydantic.SecretStr | None = pydantic.Field(
        default=None,
        min_length=16,
        description="token of this service at the lookups, with an entry in PROCESSOR_LOOKUP_CREDENTIALS",
    )
    lookup_ca_file: str = pydantic.Field(
        default="",
        description="PEM file of the authorities that certificates of https lookups are checked with; empty: the system's",
    )
    recordings_lookup_url: str = pydantic.Field(
        default="",
        pattern=r"(https?://[^\s@]+)?",
        description="where lookups of any slot of application recordings answer, under the same token; for /replay",
    )
    rrweb_dir: pydantic.DirectoryPath | None = pydantic.Field(
        default=None, description="a folder that holds the npm package rrweb, unpacked; for /replay"
    )

    live_history_seconds_max: int = pydantic.Field(
        default=300, ge=30, le=3_600, description="how far back the live lines go"
    )
    live_settle_seconds: float = pydantic.Field(
        default=7.0, gt=0, le=60, description="how long a bucket waits for all partitions"
    )
    live_customers_max: int = pydantic.Field(default=200, ge=1, le=10_000, description="customers held in memory")
    caller_requests_per_second: float = pydantic.Field(
        default=50.0,
        gt=0,
        le=100_000,
        description="requests of one person or token that the dashboard answers, and ten times as many of an organisation;"
        " four seconds' requests may come at once, others are refused (429)",
    )
    streams_max: int = pydantic.Field(default=200, ge=1, le=10_000, description="pages that listen to live updates")
    drain_seconds_max: float = pydantic.Field(
        default=10.0, gt=0, le=600, description="seconds to finish requests after SIGTERM"
    )

    @pydantic.model_validator(mode="after")
    def _whole_provider(self) -> Self:
        given = [bool(self.oidc_issuer), bool(self.oidc_client_id), self.oidc_client_secret is not None]
        if any(given) and not (all(given) and self.public_url):
            raise ValueError("a provider needs oidc_issuer, oidc_client_id, oidc_client_secret and public_url")
        return self

    @property
    def page_url(self) -> str:
        """How a browser reaches the page, without a slash at the end."""
        return self.public_url.rstrip("/") or f"http://localhost:{self.port}"
