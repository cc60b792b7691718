"""A customer's data is kept for less long than others', where it says so, in the tests' own Spark session."""

import threading
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import msgspec
import psycopg
import pytest

from services.accounts.store import schema
from services.finalizer.jobs import own_retention
from services.finalizer.jobs.maintenance import Maintenance
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.recorded_objects import ObjectsFailed, delete_named
from shared import codec
from shared.schemas.view import View
from tests.integration.deletions.deleting import recorded
from tests.integration.finalizer.finalizing import a_view
from tests.integration.finalizer.warehouse.warehousing import DAY_MS, NOW_MS, Warehouse
from tests.unit.processor.applications.video_views.beacons import T0, mux

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


def test_a_customer_may_have_its_data_kept_for_less_long_recordings_too(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days_ago = {name: NOW_MS - number * DAY_MS for name, number in (("old", 40), ("new", 2))}

    def landed_in(customer: str) -> list[View]:
        return [
            a_view(
                f"{customer}-{name}",
                customer=customer,
                day=at_ms // DAY_MS,
                first_append_ms=at_ms,
                last_append_ms=at_ms,
                view_end_ms=at_ms,
            )
            for name, at_ms in days_ago.items()
        ]

    warehouse.land([*landed_in("acme"), *landed_in("other")])
    beacons = [mux(1, "viewstart", at_ms - T0, view_id=name) for name, at_ms in days_ago.items()]
    warehouse.land_raw([*beacons, *(msgspec.structs.replace(one, customer_id="other") for one in beacons)])
    objects = tmp_path / "objects"
    rows = {
        at_ms: [recorded(name, customer, at_ms) for customer in ("acme", "other")]
        for name, at_ms in (("older", days_ago["old"] - DAY_MS), *days_ago.items())
    }
    for row in chain(*rows.values()):
        path = objects / codec.RECORDING.decode(row).object
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    driver = warehouse.with_settings(applications="recordings", objects=str(objects), recent_days=10_000.0)
    (index,) = driver.settings.row_topics
    for at_ms, values in rows.items():
        warehouse.land_rows(index, values, at_ms=at_ms)
    dsn = warehouse.installation.dsn
    schema.migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for kind, days in (("views", 20), ("beacons", 30), ("recordings", 10)):
            connection.execute("INSERT INTO accounts.retention VALUES ('acme', %s, %s)", (kind, days))
    kept = tables.those_of(driver.settings.row_topics)

    def maintain() -> None:
        maintenance = Maintenance.of(driver.settings, kept, lambda: NOW_MS, threading.Event(), serving=driver.serving)
        assert maintenance.run(warehouse.spark) == []

    def found(table: str, column: str) -> set[str]:
        return {row[0] for row in warehouse.installation.table(table, f"SELECT {column} FROM t")}

    def fails_later(where: str, names: Sequence[str]) -> None:
        if any("/old/" in name for name in names):
            raise ObjectsFailed("away")
        delete_named(where, names)

    with monkeypatch.context() as away:
        away.setattr(own_retention, "delete_named", fails_later)
        maintain()
    # A day whose objects are gone is not done again, although another day's are not.
    of_acme = "SELECT session_id FROM t WHERE customer_id = 'acme'"
    assert {row[0] for row in warehouse.installation.table("recording_index", of_acme)} == {"old", "new"}
    maintain()
    assert found("views", "view_id") == {"acme-new", "other-old", "other-new"}
    assert found("bronze", "decode(key)") == {"acme:new", "other:old", "other:new"}
    assert found("recording_index", "customer_id || session_id") == {"acmenew", "otherolder", "otherold", "othernew"}
    stored = {str(path.parent.relative_to(objects)) for path in objects.rglob("*") if path.is_file()}
    assert stored == {"acme/new", "other/older", "other/old", "other/new"}
    served = warehouse.installation.serving("SELECT view_id FROM serving.views ORDER BY 1")
    assert served == [("acme-new",), ("other-new",), ("other-old",)]
    sums = "SELECT customer_id, sum(views)::int FROM serving.rollups_hourly GROUP BY 1 ORDER BY 1"
    assert warehouse.installation.serving(sums) == [("acme", 1), ("other", 2)]
