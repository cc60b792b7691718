"""Thresholds of metrics that are worse when they are lower: good figures lie above bad ones."""

from services.rim.database.migrations import run_sql

revision = "0007"
down_revision = "0006"
upgrade = run_sql(__file__)
