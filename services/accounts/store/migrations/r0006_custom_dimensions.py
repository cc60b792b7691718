"""Titles that an organisation gives to the custom dimensions of its views."""

from services.rim.database.migrations import run_sql

revision = "0006"
down_revision = "0005"
upgrade = run_sql(__file__)
