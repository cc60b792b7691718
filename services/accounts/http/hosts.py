"""Which `Host` a request may name. A page of a stranger whose name is made to lead here (DNS rebinding) names its own."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

#: A stranger's page cannot have these names; so the service is usable where nothing is set.
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Hosts:
    """The names of this service: those given, and those of the own machine."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = LOOPBACK | {name.casefold() for name in names}

    def has(self, host: str | None) -> bool:
        """Whether a `Host` header is one of them, on any port."""
        name = name_of(host)
        return name is not None and name in self._names


def name_of(host: str | None) -> str | None:
    """The name in a `Host` header, without port and brackets; None for text that is no host."""
    if not host or not host.isascii():
        return None
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 - raises for what is no port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == host and "@" not in host else None


def is_same_origin(origin: str | None, host: str | None) -> bool:
    """Whether an `Origin` header, where there is one, is the page's own: the scheme may be a proxy's."""
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc.casefold() == (host or "").casefold()
