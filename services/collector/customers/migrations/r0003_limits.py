"""Limits in force, and what they refuse, can be read without customers' secrets; stored bytes are counted over all collectors."""

from services.rim.database.migrations import run_sql

revision = "0003"
down_revision = "0002"
upgrade = run_sql(__file__)
