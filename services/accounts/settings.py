"""Settings of every service that recognises people: the accounts' database, and how browsers reach the service."""

import ipaddress
from urllib.parse import urlsplit

import pydantic

from services.rim.database.postgres import Dsn
from shared.http.peer import Network
from shared.settings import Settings


class AccountsSettings(Settings):
    """Fields of the settings of a service whose routes have the guard."""

    postgres_dsn: Dsn = pydantic.Field(description="postgresql://... of the serving database")
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

    @pydantic.field_validator("trusted_proxies")
    @classmethod
    def _proxies_well_formed(cls, value: str) -> str:
        for name in _split(value):
            ipaddress.ip_network(name)
        return value

    @property
    def accounts_address(self) -> str:
        """The connection string of the accounts' database."""
        return (self.accounts_dsn or self.postgres_dsn).get_secret_value()

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it over TLS."""
        return self.public_url.startswith("https:")

    @property
    def hosts(self) -> list[str]:
        """The names that a `Host` header may have, beside those of this machine."""
        public = urlsplit(self.public_url).hostname
        return [*_split(self.allowed_hosts), *([public] if public else [])]

    @property
    def proxies(self) -> list[Network]:
        """The networks of `trusted_proxies`."""
        return [ipaddress.ip_network(name) for name in _split(self.trusted_proxies)]


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
