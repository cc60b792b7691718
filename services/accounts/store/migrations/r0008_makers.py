"""Who made tokens and invitations, by id."""

from services.rim.database.migrations import run_sql

revision = "0008"
down_revision = "0007"
upgrade = run_sql(__file__)
