"""From which hour on sums of hours are kept."""

from services.rim.database.migrations import run_sql

revision = "0012"
down_revision = "0011"
upgrade = run_sql(__file__)
