"""Every accepted beacon stands in exactly one count: of one row, or of late, duplicate or dropped beacons."""

from services.processor.engine.driver import Driver
from shared import topics
from shared.schemas.view import View
from tests.unit.processor.applications.video_views.beacons import live, rows


def newest(driver: Driver) -> dict[str, View]:
    """The newest row of each view, by its id; none for those that were taken back."""
    return _newest_of(rows(driver))


def _newest_of(every: list[View]) -> dict[str, View]:
    revisions: dict[str, list[int]] = {}
    for row in every:
        revisions.setdefault(row.view_id, []).append(row.revision)
    found = {row.view_id: row for row in every}
    for view_id, row in found.items():
        assert revisions[view_id] == list(range(1, row.revision + 1)), "each revision comes once, in order"
    return {view_id: row for view_id, row in found.items() if not row.deleted}


def assert_each_is_counted_once(driver: Driver, piped: int, distinct: int) -> None:
    """Holds once nothing is open any more."""
    buckets, every = live(driver), rows(driver)
    newest_rows = _newest_of(every)
    beacons, duplicates, late, dropped = (
        sum(getattr(bucket, name) for bucket in buckets) for name in ("beacons", "duplicates", "late", "dropped")
    )
    assert len(driver.outputs(topics.REJECTED)) == 0
    assert len(driver.outputs(topics.LATE)) == late
    in_rows = sum(row.beacon_count for row in newest_rows.values())
    assert (in_rows + dropped, beacons + late, duplicates) == (beacons, distinct, piped - distinct)
    # A view that was taken back has not started; its finish stays counted.
    assert sum(bucket.views_started for bucket in buckets) == len(newest_rows)
    assert sum(bucket.views_finished for bucket in buckets) == len({row.view_id for row in every})
    last = {bucket.customer_id: bucket for bucket in buckets}
    assert all((one.open_now, one.viewers_now) == (0, 0) for one in last.values())
