"""Two more steps of requests to delete data: alert rules are withdrawn first, and what applications learned goes."""

from services.rim.database.migrations import run_sql

revision = "0005"
down_revision = "0004"
upgrade = run_sql(__file__)
