"""The sites from which people have logged in."""

from services.rim.database.migrations import run_sql

revision = "0009"
down_revision = "0008"
upgrade = run_sql(__file__)
