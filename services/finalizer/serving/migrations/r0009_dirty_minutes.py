"""Which minutes of a dirty slice have changed."""

from services.rim.database.migrations import run_sql

revision = "0009"
down_revision = "0008"
upgrade = run_sql(__file__)
