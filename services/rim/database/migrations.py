"""Migrates a service's part of a database to the schema that its code needs: Alembic runs the missing revisions in one transaction.

A revision is a module beside its plain SQL file. Revisions only go forward. Each service has its own history, in table
`public.<service>_revision`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog
from alembic import command, op
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from psycopg import sql
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from services.rim.database import locks

log = structlog.get_logger(__name__)

_ENVIRONMENT_DIR: Final = Path(__file__).parent / "alembic"
_CONNECT_SECONDS_MAX: Final = 5
#: Another process that migrates holds the lock for as long as its statements take.
_LOCK_MS_MAX: Final = 120_000


class DatabaseNewer(RuntimeError):
    """The database was brought to a revision that this version does not know: run the version that did."""


def migrate(dsn: str, service: str, revisions_dir: Path) -> list[str]:
    """Applies what is missing, all or nothing, one process at a time; returns the revisions applied.

    A database of the project's earlier runner (table `public.<service>_migrations`) goes on where that one left it.
    Raises `DatabaseNewer` and psycopg's errors.
    """
    engine = create_engine("postgresql+psycopg://", creator=lambda: _connect(dsn), poolclass=NullPool)
    try:
        with engine.begin() as connection:
            applied = _upgrade(connection, service, revisions_dir)
    except DBAPIError as error:
        raise (error.orig or error) from None
    finally:
        engine.dispose()
    for revision in applied:
        log.info("migration_applied", service=service, revision=revision)
    return applied


def migrate_if_behind(dsn: str, service: str, revisions_dir: Path) -> list[str]:
    """As `migrate`, but writes nothing where nothing is missing: a role that may not create schemas can run it there."""
    newest = max(file.name[1:5] for file in revisions_dir.glob("r*.sql"))
    with _connect(dsn) as connection:
        is_there = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [f"public.{service}_revision"]).fetchone()
        if is_there == (True,):
            table = sql.Identifier("public", f"{service}_revision")
            current = connection.execute(sql.SQL("SELECT version_num FROM {}").format(table)).fetchone()
            if current == (newest,):
                return []
    return migrate(dsn, service, revisions_dir)


def run_sql(revision_file: str) -> Callable[[], None]:
    """The `upgrade` of a revision: runs the SQL file of the same name beside it, whole."""

    def upgrade() -> None:
        statements = Path(revision_file).with_suffix(".sql").read_text()
        # The driver's own connection: no layer above it looks for parameters in the text.
        driver: Any = op.get_bind().connection.driver_connection
        driver.execute(sql.SQL(statements))

    return upgrade


def _connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(
        dsn,
        connect_timeout=_CONNECT_SECONDS_MAX,
        application_name="playhead-migrations",
        options=f"-c lock_timeout={_LOCK_MS_MAX}",
    )


def _upgrade(connection: Connection, service: str, revisions_dir: Path) -> list[str]:
    applied: list[str] = []
    version_table = f"{service}_revision"
    config = Config()
    for name, value in (("script_location", _ENVIRONMENT_DIR), ("version_locations", revisions_dir)):
        config.set_main_option(name, str(value).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.attributes |= {"connection": connection, "version_table": version_table, "applied": applied}
    # Held to the end of the transaction: a second process finds everything done.
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": locks.MIGRATIONS})
    if not _is_there(connection, version_table) and _is_there(connection, f"{service}_migrations"):
        former = connection.execute(text(f"SELECT max(name) FROM public.{service}_migrations"))  # noqa: S608 - ours
        # Its names began with the number of the revision.
        command.stamp(config, str(former.scalar_one()).partition("_")[0])
        applied.clear()
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
        current = connection.execute(text(f"SELECT version_num FROM public.{version_table}")).scalar()  # noqa: S608
        if current in known:
            raise
        raise DatabaseNewer(
            f"the database is at revision {current} of the {service}, newer than this version: run the version that made it"
        ) from error
    return applied


def _is_there(connection: Connection, table: str) -> bool:
    found = connection.execute(text("SELECT to_regclass(:name) IS NOT NULL"), {"name": f"public.{table}"})
    return bool(found.scalar())
