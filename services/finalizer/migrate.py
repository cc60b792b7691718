"""Brings the serving database to the schema this code needs: plain SQL files, in order, each applied once."""

import hashlib
from pathlib import Path
from typing import Final

import psycopg
import structlog
from psycopg import sql

log = structlog.get_logger(__name__)

MIGRATIONS_DIR: Final = Path(__file__).parent / "migrations"
#: Any number that nothing else in this database locks.
_LOCK: Final = 7_316_201_944


class MigrationChanged(RuntimeError):
    """A migration that the database has already seen reads differently now: add a new one instead."""


def migrate(connection: psycopg.Connection, migrations_dir: Path = MIGRATIONS_DIR) -> list[str]:
    """Applies what is missing, all in one transaction, one process at a time; returns the names applied."""
    applied = []
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS public.finalizer_migrations"
            " (name text PRIMARY KEY, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        seen: dict[str, str] = dict(
            connection.execute("SELECT name, sha256 FROM public.finalizer_migrations").fetchall()
        )
        for path in sorted(migrations_dir.glob("*.sql")):
            statements = path.read_bytes()
            digest = hashlib.sha256(statements).hexdigest()
            if path.name in seen:
                if seen[path.name] != digest:
                    raise MigrationChanged(f"{path.name} was applied with other contents")
                continue
            connection.execute(sql.SQL(statements.decode()))
            connection.execute(
                "INSERT INTO public.finalizer_migrations (name, sha256) VALUES (%s, %s)", (path.name, digest)
            )
            applied.append(path.name)
    for name in applied:
        log.info("migration_applied", name=name)
    return applied
