"""Databases that have their tables from the first moment: a copy of one that was migrated costs less than to migrate another."""

from collections.abc import Callable
from typing import Final
from uuid import uuid4

import psycopg
from psycopg import sql

from deploy.local.postgres import Postgres

#: By the server and what was applied, the database that others are copies of.
_migrated: Final[dict[tuple[str, tuple[Callable[[str], object], ...]], str]] = {}


def migrated_database(postgres: Postgres, prefix: str, *migrations: Callable[[str], object]) -> str:
    """The DSN of a database of one's own, in which these migrations were applied, in this order."""
    name, key = f"{prefix}_{uuid4().hex}", (postgres.dsn, migrations)
    if key not in _migrated:
        template = f"template_{uuid4().hex}"
        dsn = postgres.create_database(template)
        for migrate in migrations:
            migrate(dsn)
        _migrated[key] = template
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        # Postgres waits until nobody is in the template any more.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(_migrated[key])))
    return postgres.dsn_of(name)
