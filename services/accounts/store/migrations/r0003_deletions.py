"""Requests that data be deleted, their steps; and for how long a customer's data is kept."""

from services.rim.database.migrations import run_sql

revision = "0003"
down_revision = "0002"
upgrade = run_sql(__file__)
