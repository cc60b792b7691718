"""Makes or upgrades the customers table: `COLLECTOR_CUSTOMERS_DSN=postgresql://owner@... python -m deploy.customers_table`.

Run it as the owner of schemas `collector` and `limits`, before collectors of this version start. docs/security.md has the rights of
collectors, finalizer and dashboard.
"""

import os
import sys

import psycopg

from services.collector.customers.table import MIGRATIONS_DIR
from services.collector.settings import CollectorSettings
from services.rim.database.migrations import DatabaseNewer, migrate
from services.rim.process.secrets import with_secrets
from shared.settings import SettingsError


def main() -> int:
    """0 when the table is there as this version needs it."""
    try:
        dsn = CollectorSettings.load(with_secrets(CollectorSettings, os.environ)).customers_dsn
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if dsn is None:
        sys.stderr.write("COLLECTOR_CUSTOMERS_DSN must be set\n")
        return 2
    try:
        migrate(dsn.get_secret_value(), "collector", MIGRATIONS_DIR)
    except (psycopg.Error, DatabaseNewer) as error:
        cause = str(error) if isinstance(error, DatabaseNewer) else f"{type(error).__name__} {error.sqlstate or ''}"
        sys.stderr.write(f"the customers table is not as it must be: {cause}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
