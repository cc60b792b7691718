"""Receivers, rules with all their versions, incidents with their changes, comments, deliveries."""

from services.rim.database.migrations import run_sql

revision = "0001"
down_revision = None
upgrade = run_sql(__file__)
