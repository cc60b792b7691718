"""Brings the serving database to the schema this code needs."""

from pathlib import Path
from typing import Final

import psycopg

from services.rim import migrations

MIGRATIONS_DIR: Final = Path(__file__).parent / "migrations"


def migrate(connection: psycopg.Connection, migrations_dir: Path = MIGRATIONS_DIR) -> list[str]:
    """Applies what is missing; returns the names applied. See `services.rim.migrations`."""
    return migrations.migrate(connection, "finalizer", migrations_dir)
