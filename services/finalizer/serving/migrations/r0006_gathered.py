"""Finds the days in which members of a customer are added up under (other)."""

from services.rim.database.migrations import run_sql

revision = "0006"
down_revision = "0005"
upgrade = run_sql(__file__)
