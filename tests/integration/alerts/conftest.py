"""What all tests of alerts share."""

import pytest

from deploy.local.postgres import Postgres
from services.accounts.store import schema as accounts_schema
from services.alerts.store import schema
from tests.integration.parts.databases import migrated_database


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    """An empty database with accounts and alerts."""
    return migrated_database(postgres, "alerts", accounts_schema.migrate, schema.migrate)
