"""Names of customers, invitations that can be withdrawn, second factors, identities of other providers."""

from services.rim.database.migrations import run_sql

revision = "0002"
down_revision = "0001"
upgrade = run_sql(__file__)
