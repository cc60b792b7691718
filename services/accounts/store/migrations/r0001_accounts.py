"""Organisations, people, sessions, links, tokens, attempts, and the audit log."""

from services.rim.database.migrations import run_sql

revision = "0001"
down_revision = None
upgrade = run_sql(__file__)
