"""The dashboard's settings and limits, from the environment: `DASHBOARD_PORT`, `DASHBOARD_POSTGRES_DSN` and so on."""

import ipaddress
from typing import ClassVar
from urllib.parse import urlsplit

import pydantic

from services.rim.database.postgres import Dsn
from shared.peer import Network
from shared.settings import Settings


class DashboardSettings(Settings):
    """What the dashboard reads besides the common settings."""

    PREFIX: ClassVar[str] = "DASHBOARD_"

    host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of the page; 0.0.0.0 in a container or behind a proxy"
    )
    port: int = pydantic.Field(default=8090, ge=0, le=65535, description="port of the page")
    admin_host: str = pydantic.Field(default="0.0.0.0", min_length=1, description="address of health and metrics")
    admin_port: int = pydantic.Field(default=9104, ge=0, le=65535, description="port of health and metrics")

    postgres_dsn: Dsn = pydantic.Field(description="postgresql://... of the serving database")
    customers_dsn: Dsn | None = pydantic.Field(
        default=None,
        description="postgresql://... of the customers' database, if it is not the serving one; for /limits",
    )
    postgres_connections_max: int = pydantic.Field(
        default=4, ge=1, le=100, description="connections to Postgres at a time"
    )
    query_seconds_max: float = pydantic.Field(
        default=5.0, gt=0, le=60, description="then the page shows that Postgres is away"
    )

    accounts_dsn: Dsn | None = pydantic.Field(
        default=None,
        description="postgresql://... of the accounts' database, if it is not the serving one; its user writes schema accounts",
    )
    public_url: str = pydantic.Field(
        default="",
        pattern=r"(https?://[^\s@/?#]+)?",
        description="how browsers reach the page: https://playhead.example.com; with https, cookies are sent over TLS alone",
    )
    allowed_hosts: str = pydantic.Field(
        default="",
        description="names that a Host header may have, comma separated, beside those of this machine and of the public URL",
    )
    trusted_proxies: str = pydantic.Field(
        default="", description="networks whose X-Forwarded-For is read, comma separated: 10.0.0.0/8"
    )

    lookup_url: str = pydantic.Field(
        default="",
        pattern=r"(https?://[^\s@]+)?",
        description="where lookups of any processor slot answer; without it and its token no single view can be shown",
    )
    lookup_token: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=16, description="PROCESSOR_LOOKUP_TOKEN of the slots"
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
    unpublished_seconds_max: float = pydantic.Field(
        default=120.0,
        gt=0,
        le=3_600,
        description="how long a finished view may be missing in the quality table before the page calls the table old",
    )
    streams_max: int = pydantic.Field(default=200, ge=1, le=10_000, description="pages that listen to live updates")
    drain_seconds_max: float = pydantic.Field(
        default=10.0, gt=0, le=600, description="to finish what is under way after SIGTERM"
    )

    @pydantic.field_validator("trusted_proxies")
    @classmethod
    def _proxies_well_formed(cls, value: str) -> str:
        for name in _split(value):
            ipaddress.ip_network(name)
        return value

    @property
    def hosts(self) -> list[str]:
        """The names that a `Host` header may have, beside those of this machine."""
        public = urlsplit(self.public_url).hostname
        return [*_split(self.allowed_hosts), *([public] if public else [])]

    @property
    def proxies(self) -> list[Network]:
        """The networks of `trusted_proxies`."""
        return [ipaddress.ip_network(name) for name in _split(self.trusted_proxies)]

    @property
    def page_url(self) -> str:
        """How a browser reaches the page, without a slash at the end."""
        return self.public_url.rstrip("/") or f"http://localhost:{self.port}"


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
