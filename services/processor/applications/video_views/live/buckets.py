"""Live gauges of a partition: one row a customer, sliced by chosen dimensions, emitted and reset every 5 s of the clock."""

from typing import Any, Final

from services.processor.applications.video_views.live.cohorts import Cohorts
from services.processor.applications.video_views.live.rows import LIVE_ROWS, CohortRow, LiveRow
from services.processor.applications.video_views.live.slicing import FIELDS, slices_of
from services.processor.engine.application.application import Context, Store
from shared.codec import LIVE as LIVE_CODEC
from shared.schemas.live import BUCKET_MS, IDLE_MS, SCHEMA_VERSION, Live
from shared.topics import LIVE


class LiveBuckets:
    """Counts into the open bucket of each customer, and emits the bucket when the clock has passed it."""

    def __init__(self, context: Context, dimensions: tuple[str, ...]) -> None:
        self._context = context
        self._dimensions = dimensions
        self._rows: Store[LiveRow] = context.store(LIVE_ROWS)
        self._cohorts = Cohorts(context, dimensions)
        #: Whether a name is of the present dimensions.
        self.is_cohort = self._cohorts.is_name
        #: The last customer, and its key: beacons of one often follow each other.
        self._customer_id, self._key = "", b""

    def of(self, customer_id: str) -> LiveRow:
        """The customer's open bucket, to be counted into; it is stored with this checkpoint."""
        if customer_id != self._customer_id:
            self._customer_id, self._key = customer_id, customer_id.encode()
        key = self._key
        clock_ms = self._context.clock_ms
        row = self._rows.get(key)
        if row is None:
            row = LiveRow(bucket_ms=_bucket(clock_ms), active_ms=clock_ms)
        row.active_ms = clock_ms
        row.customer_id = customer_id
        self._rows.put(key, row, row.bucket_ms + BUCKET_MS)
        return row

    def cohort_name(self, row: LiveRow, values: dict[str, Any]) -> str:
        """The cohort of the customer in which a view with these values of the dimensions counts."""
        return self._cohorts.name_of(row.customer_id.encode(), row.cohorts, values)

    def cohort(self, row: LiveRow, name: str) -> CohortRow:
        """A cohort of the customer in its open bucket, to be counted into."""
        found, is_new = self._cohorts.open(row.customer_id.encode(), name, row.bucket_ms, row.active_ms)
        row.cohorts += is_new
        return found

    def fire(self, key: bytes) -> None:
        """The clock has passed the customer's bucket."""
        row = self._rows.get(key)
        if row is None:
            return
        customer_id, cohorts = key.decode(), self._cohorts.all_of(key, row.cohorts)
        live = Live(
            schema_version=SCHEMA_VERSION,
            partition=self._context.partition,
            customer_id=customer_id,
            slices=slices_of(
                self._dimensions,
                self._cohorts.figures_of(cohorts, row.bucket_ms),
                [getattr(row, field) for field in FIELDS],
            ),
            **{field: getattr(row, field) for field in _SHARED_FIELDS},
        )
        # By key: what all partitions count of a customer meets in one, where alerts judge it as a whole.
        self._context.emit(LIVE, key, LIVE_CODEC.encode(live), by_key=True)
        clock_ms = self._context.clock_ms
        if not row.open_now and clock_ms - row.active_ms > IDLE_MS:
            self._cohorts.forget_all(key, row.cohorts)
            self._rows.delete(key)
            return
        row.bucket_ms = _bucket(clock_ms)
        for field in _COUNTS:
            setattr(row, field, 0)
        row.former_slices = {}
        row.cohorts -= self._cohorts.forget_idle(key, cohorts, clock_ms)
        self._rows.put(key, row, row.bucket_ms + BUCKET_MS)


_SHARED_FIELDS: Final = tuple(
    field
    for field in LiveRow.__struct_fields__
    if field not in ("active_ms", "former_slices", "cohorts", "customer_id")
)
_COUNTS: Final = tuple(field for field in _SHARED_FIELDS if not field.endswith("_now") and field != "bucket_ms")


def _bucket(clock_ms: int) -> int:
    return clock_ms - clock_ms % BUCKET_MS
