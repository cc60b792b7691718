"""Write keys of customers, with what each may do."""

from services.rim.database.migrations import run_sql

revision = "0004"
down_revision = "0003"
upgrade = run_sql(__file__)
