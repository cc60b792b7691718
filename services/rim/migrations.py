"""Brings a service's part of a database to the schema its code needs: plain SQL files, in order, each applied once."""

import hashlib
from pathlib import Path
from typing import Final

import psycopg
import structlog
from psycopg import sql

log = structlog.get_logger(__name__)

#: Any number that nothing else in this database locks.
_LOCK: Final = 7_316_201_944


class MigrationChanged(RuntimeError):
    """A migration that the database has already seen reads differently now: add a new one instead."""


def migrate(connection: psycopg.Connection, service: str, migrations_dir: Path) -> list[str]:
    """Applies what is missing, all in one transaction, one process at a time; returns the names applied."""
    applied = []
    book = sql.Identifier("public", f"{service}_migrations")
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {}"
                " (name text PRIMARY KEY, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
            ).format(book)
        )
        seen: dict[str, str] = dict(connection.execute(sql.SQL("SELECT name, sha256 FROM {}").format(book)).fetchall())
        for path in sorted(migrations_dir.glob("*.sql")):
            statements = path.read_bytes()
            digest = hashlib.sha256(statements).hexdigest()
            if path.name in seen:
                if seen[path.name] != digest:
                    raise MigrationChanged(f"{path.name} was applied with other contents")
                continue
            connection.execute(sql.SQL(statements.decode()))
            connection.execute(
                sql.SQL("INSERT INTO {} (name, sha256) VALUES (%s, %s)").format(book), (path.name, digest)
            )
            applied.append(path.name)
    for name in applied:
        log.info("migration_applied", name=name)
    return applied
