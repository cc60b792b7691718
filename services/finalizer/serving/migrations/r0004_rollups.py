"""Rollups by hour, day and dimensions; recent views; generations that are swapped in."""

from services.rim.database.migrations import run_sql

revision = "0004"
down_revision = "0003"
upgrade = run_sql(__file__)
