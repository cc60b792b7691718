"""What all tests of alerts share."""

from uuid import uuid4

import pytest

from deploy.local.postgres import Postgres
from services.accounts.store import schema as accounts_schema
from services.alerts.store import schema


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    """An empty database with accounts and alerts."""
    made = postgres.create_database(f"alerts_{uuid4().hex}")
    accounts_schema.migrate(made)
    schema.migrate(made)
    return made
