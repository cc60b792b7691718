"""Makes the product's database: users, schemas, rights: `DATABASE_DSN=postgresql://superuser@... python -m deploy.database`.

Each service has a user of its own with the rights of deploy/rights.sql and no others; so has Grafana. Users are made with the
password of `DATABASE_<USER>_PASSWORD`, and cannot log in without one; one that exists gets the password. The finalizer's owns the
database. Run it as a superuser at the first start, and at each upgrade, before the services: it may run again at any time.
"""

import os
import re
import sys
from pathlib import Path
from typing import ClassVar, Final, LiteralString

import psycopg
import pydantic
from psycopg import sql
from psycopg.conninfo import make_conninfo

from services.accounts.store import schema as accounts
from services.alerts.store import schema as alerts
from services.collector.customers.table import MIGRATIONS_DIR
from services.finalizer.serving import migrate as serving
from services.rim.database.migrations import DatabaseNewer, migrate
from services.rim.database.postgres import Dsn
from services.rim.process.secrets import with_secrets
from shared.settings import Settings, SettingsError

RIGHTS: Final = Path(__file__).parent / "rights.sql"
#: The users, as rights.sql names them.
USERS: Final = ("collector", "finalizer", "serving", "query", "dashboard", "notifications", "grafana")
_CONNECT_SECONDS_MAX: Final = 30


class DatabaseSettings(Settings):
    """Where the database is, and the passwords of its users."""

    PREFIX: ClassVar[str] = "DATABASE_"

    dsn: Dsn = pydantic.Field(description="postgresql://... of a superuser, to the product's database")
    finalizer_password: pydantic.SecretStr = pydantic.Field(
        min_length=16, description="password of the database's owner"
    )
    collector_password: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=16, description="password of user collector; without it that user cannot log in"
    )
    serving_password: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=16, description="password of user serving; without it that user cannot log in"
    )
    query_password: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=16, description="password of user query; without it that user cannot log in"
    )
    dashboard_password: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=16, description="password of user dashboard; without it that user cannot log in"
    )
    notifications_password: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=16, description="password of user notifications; without it that user cannot log in"
    )
    grafana_password: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=16, description="password of user grafana; without it that user cannot log in"
    )


def make(settings: DatabaseSettings) -> None:
    """Users, schemas and rights, as this version needs them. Raises `psycopg.Error` and `DatabaseNewer`."""
    dsn = settings.dsn.get_secret_value()
    with psycopg.connect(dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS_MAX) as connection:
        for user in USERS:
            _make_user(connection, user, getattr(settings, f"{user}_password"))
        database = connection.info.dbname
        connection.execute(
            sql.SQL("ALTER DATABASE {} OWNER TO finalizer").format(sql.Identifier(database)),
        )
    # What it makes belongs to whom it runs as: the finalizer migrates its tables at its own start too.
    serving.migrate(make_conninfo(dsn, user="finalizer", password=settings.finalizer_password.get_secret_value()))
    migrate(dsn, "collector", MIGRATIONS_DIR)
    accounts.migrate(dsn)
    alerts.migrate(dsn)
    with psycopg.connect(dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS_MAX) as connection:
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.execute(rights())


def rights() -> LiteralString:
    """The grants of rights.sql: all but its first line, which gives the database by name to its owner."""
    return re.sub(r"^ALTER DATABASE .*\n", "", RIGHTS.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _make_user(connection: psycopg.Connection, user: str, password: pydantic.SecretStr | None) -> None:
    if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (user,)).rowcount == 0:
        connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(user)))
    if password is None:
        return
    # The server's log may have statements: it gets what it would keep, and no password.
    kept = connection.pgconn.encrypt_password(password.get_secret_value().encode(), user.encode(), b"scram-sha-256")
    connection.execute(
        sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(user), sql.Literal(kept.decode()))
    )


def main() -> int:
    """The command; 0 when everything is there."""
    try:
        settings = DatabaseSettings.load(with_secrets(DatabaseSettings, os.environ))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    try:
        make(settings)
    except (psycopg.Error, DatabaseNewer) as error:
        sys.stderr.write(f"{_cause(error)}\n")
        return 1
    return 0


def _cause(error: psycopg.Error | DatabaseNewer) -> str:
    """What to look at. Texts of psycopg are left out: they may name hosts and users."""
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        return (
            "cannot connect to the database, or not log in: look at its log, and at the DSN's host, user and password"
        )
    why = str(error) if isinstance(error, DatabaseNewer) else f"{type(error).__name__} {error.sqlstate or ''}"
    return f"the database is not as it must be: {why}"


if __name__ == "__main__":
    sys.exit(main())
