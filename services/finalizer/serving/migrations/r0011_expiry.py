"""Live pairs expire by an index of their own; hot rows are kept from an earlier hour again, after a clock that was ahead."""

from services.rim.database.migrations import run_sql

revision = "0011"
down_revision = "0010"
upgrade = run_sql(__file__)
