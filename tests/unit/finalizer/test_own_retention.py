"""What of a table is too old for its customers."""

from types import SimpleNamespace
from typing import Any

from services.finalizer.jobs.own_retention import OwnRetention, condition
from services.finalizer.warehouse import tables

DAY_MS = 86_400_000
DAYS = {"views": {"acme": 20, "b": 20, "'; DROP": 1}, "beacons": {"acme": 3}, "recordings": {"acme": 5}}


def test_rows_are_named_by_day_and_customer_sums_are_kept_a_week_less() -> None:
    now_ms = 100 * DAY_MS
    assert condition(tables.VIEWS, DAYS, now_ms) == "(day < 80 AND (customer_id IN ('acme', 'b')))"
    assert condition(tables.ROLLUPS, DAYS, now_ms) == "(day < 87 AND (customer_id IN ('acme', 'b')))"
    assert condition(tables.BRONZE, DAYS, now_ms) == "(day < 97 AND (startswith(key, X'61636d653a')))"
    assert condition(tables.ROWS["recording_index"], DAYS, now_ms) == "(day < 95 AND (customer_id IN ('acme')))"
    assert condition(tables.ROWS["traces"], DAYS, now_ms) is None
    assert condition(tables.UNPARSED, DAYS, now_ms) is None
    assert condition(tables.VIEWS, {}, now_ms) is None


def test_what_is_set_is_not_known_while_the_database_is_away() -> None:
    settings: Any = SimpleNamespace(accounts_database="postgresql://127.0.0.1:1/none", objects="", warehouse_dir="")
    assert OwnRetention(settings).days() is None
