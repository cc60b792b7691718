"""The audit log is read by actor too."""

from services.rim.database.migrations import run_sql

revision = "0010"
down_revision = "0009"
upgrade = run_sql(__file__)
