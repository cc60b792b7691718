"""When the finalizer last published."""

from services.rim.database.migrations import run_sql

revision = "0003"
down_revision = "0002"
upgrade = run_sql(__file__)
