"""Where every beacon that was taken must stand: in exactly one row's count, or in a count of late, duplicate or dropped ones."""

from services.processor.engine.driver import Driver
from shared import topics
from shared.schemas.view import View
from tests.unit.processor.applications.video_views.beacons import live, rows


def newest(driver: Driver) -> dict[str, View]:
    """The newest row of each view, by its id; none for those that were taken back."""
    found = {row.view_id: row for row in rows(driver)}
    for row in found.values():
        others = [other.revision for other in rows(driver) if other.view_id == row.view_id]
        assert others == list(range(1, row.revision + 1)), "each revision comes once, in order"
    return {view_id: row for view_id, row in found.items() if not row.deleted}


def assert_each_is_counted_once(driver: Driver, piped: int, distinct: int) -> None:
    """Holds once nothing is open any more."""
    buckets = live(driver)
    beacons, duplicates, late, dropped = (
        sum(getattr(bucket, name) for bucket in buckets) for name in ("beacons", "duplicates", "late", "dropped")
    )
    assert len(driver.outputs(topics.REJECTED)) == 0
    assert len(driver.outputs(topics.LATE)) == late
    in_rows = sum(row.beacon_count for row in newest(driver).values())
    assert (in_rows + dropped, beacons + late, duplicates) == (beacons, distinct, piped - distinct)
    # A view that was taken back has not started; that it had finished stays told.
    assert sum(bucket.views_started for bucket in buckets) == len(newest(driver))
    assert sum(bucket.views_finished for bucket in buckets) == len({row.view_id for row in rows(driver)})
    last = {bucket.customer_id: bucket for bucket in buckets}
    assert all((one.open_now, one.viewers_now) == (0, 0) for one in last.values())
