"""A customer may have a limit of bytes stored in a day."""

from services.rim.database.migrations import run_sql

revision = "0002"
down_revision = "0001"
upgrade = run_sql(__file__)
