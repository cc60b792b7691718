"""Brings schema `alerts` to what this code needs."""

from pathlib import Path
from typing import Final

import psycopg

from services.rim.database import migrations

MIGRATIONS_DIR: Final = Path(__file__).parent / "migrations"
#: The newest file of `migrations`.
HEAD: Final = max(file.name[1:5] for file in MIGRATIONS_DIR.glob("r*.sql"))
_CONNECT_SECONDS_MAX: Final = 5


def migrate(dsn: str) -> list[str]:
    """Applies what is missing; returns the revisions applied. See `services.rim.database.migrations`.

    A role that may not create schemas can run it where nothing is missing.
    """
    with psycopg.connect(dsn, connect_timeout=_CONNECT_SECONDS_MAX, application_name="playhead-alerts") as connection:
        is_there = connection.execute("SELECT to_regclass('public.alerts_revision') IS NOT NULL").fetchone()
        if is_there == (True,):
            current = connection.execute("SELECT version_num FROM public.alerts_revision").fetchone()
            if current == (HEAD,):
                return []
    return migrations.migrate(dsn, "alerts", MIGRATIONS_DIR)
