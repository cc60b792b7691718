"""Choices of people: saved views of the page, and thresholds from which a figure is good or bad."""

from services.rim.database.migrations import run_sql

revision = "0004"
down_revision = "0003"
upgrade = run_sql(__file__)
