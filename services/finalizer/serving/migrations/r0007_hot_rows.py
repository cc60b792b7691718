"""Finished views as typed rows, and sums of their minutes and hours that triggers keep."""

from services.rim.database.migrations import run_sql

revision = "0007"
down_revision = "0006"
upgrade = run_sql(__file__)
