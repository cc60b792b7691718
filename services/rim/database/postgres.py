"""The connection string of a service's Postgres: it is checked, and log lines cannot contain a part of it."""

import logging
import re
from pathlib import Path
from typing import Annotated, Final

import psycopg
import pydantic
from psycopg.conninfo import conninfo_to_dict

#: libpq's least version is 1.2, unless the string says otherwise.
_OLD_TLS: Final = frozenset({"TLSv1", "TLSv1.1"})
_PORTS: Final = re.compile(r"[0-9,]*\Z")

#: The connection is gone or of no use, and the same work on another one may succeed. A session that Postgres ended, because its
#: process had stopped in a transaction, is reported as an internal error.
LOST: Final = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.IdleInTransactionSessionTimeout)


def _checked(dsn: pydantic.SecretStr) -> pydantic.SecretStr:
    if not _is_readable(dsn.get_secret_value()):
        raise ValueError("no connection string that libpq can read; special characters must be percent-encoded")
    if _is_old_tls(dsn.get_secret_value()):
        raise ValueError("ssl_min_protocol_version and ssl_max_protocol_version are TLSv1.2 at least")
    return dsn


def _is_old_tls(dsn: str) -> bool:
    parts = conninfo_to_dict(dsn)
    return any(parts.get(f"ssl_{end}_protocol_version") in _OLD_TLS for end in ("min", "max"))


def _is_readable(dsn: str) -> bool:
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        return False
    # What follows an @ or / in a password that was not encoded is taken for the host or the port. A first @ is an
    # abstract socket's.
    return "@" not in str(parts.get("host", ""))[1:] and bool(_PORTS.match(str(parts.get("port", ""))))


#: `postgresql://user:password@host:port/database` or `key=value ...`. One that libpq would misread is refused here, since its
#: errors quote what they stumble over: a password's tail as a host or port.
Dsn = Annotated[pydantic.SecretStr, pydantic.AfterValidator(_checked)]


def certificate_files(dsn: pydantic.SecretStr | None) -> list[Path]:
    """PEM files of certificates that connections of this string rest on."""
    parts = conninfo_to_dict(dsn.get_secret_value()) if dsn is not None else {}
    named = (parts.get(name) for name in ("sslrootcert", "sslcert"))
    # `system` means the authorities that the machine trusts.
    return [Path(str(name)) for name in named if name and name != "system"]


def log_pool_errors_by_kind() -> None:
    """From now on psycopg's pool logs errors by their kind: their texts are the driver's, and name hosts and users."""
    logging.getLogger("psycopg.pool").addFilter(_by_kind)


def _by_kind(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(type(part).__name__ if isinstance(part, Exception) else part for part in record.args)
    record.exc_info = None
    return True
