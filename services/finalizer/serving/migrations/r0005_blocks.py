"""Blocks of hours, so that a year is a few rows a customer."""

from services.rim.database.migrations import run_sql

revision = "0005"
down_revision = "0004"
upgrade = run_sql(__file__)
