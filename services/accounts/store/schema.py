"""Brings schema `accounts` to what this code needs."""

from pathlib import Path
from typing import Final

from services.rim.database import migrations

MIGRATIONS_DIR: Final = Path(__file__).parent / "migrations"


def migrate(dsn: str) -> list[str]:
    """Applies what is missing; returns the revisions applied. See `migrations.migrate_if_behind`."""
    return migrations.migrate_if_behind(dsn, "accounts", MIGRATIONS_DIR)
