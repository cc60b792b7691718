"""Live gauges of a partition: one row a customer, sliced by chosen dimensions, emitted and reset every 5 s of the clock."""

from typing import Any, Final

from services.processor.applications.video_views.live.cohorts import Cohorts
from services.processor.applications.video_views.live.rows import LIVE_ROWS, CohortRow, LiveRow
from services.processor.applications.video_views.live.slicing import FIELDS, slices_of
from services.processor.engine.application.application import Context, Store
from shared.codec import LIVE as LIVE_CODEC
from shared.schemas.live import BUCKET_MS, IDLE_MS, SCHEMA_VERSION, Live
from shared.topics import LIVE

#: Customers whose quiet buckets are kept, and the longest value that is.
_QUIET_MAX: Final = 1_000
_QUIET_BYTES_MAX: Final = 2_048


class _Quiet:
    """A customer's bucket in which nothing was counted: the next one is the same but for its time, until something is.

    It is of this very row: where changes of the row are dropped, there is another one.
    """

    def __init__(self, row: LiveRow) -> None:
        self.row = row
        #: What is emitted, before its time and after it; empty until a bucket was quiet from its beginning.
        self.head = b""
        self.tail = b""
        #: Up to this clock nothing of the customer is forgotten.
        self.until_ms = 0


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
        #: Of customers into whose buckets nothing was counted since the last one was emitted.
        self._quiet: dict[bytes, _Quiet] = {}

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
        if key in self._quiet:
            del self._quiet[key]
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
        clock_ms = self._context.clock_ms
        quiet = self._quiet.get(key)
        if quiet is not None and quiet.row is row and quiet.head and clock_ms <= quiet.until_ms:
            self._emit(key, quiet.head + str(row.bucket_ms).encode() + quiet.tail)
            self._begin(key, row, clock_ms)
            return
        cohorts = self._cohorts.all_of(key, row.cohorts)
        value = self._value(key, row, cohorts)
        self._emit(key, value)
        if not row.open_now and clock_ms - row.active_ms > IDLE_MS:
            self._cohorts.forget_all(key, row.cohorts)
            self._rows.delete(key)
            return
        forgotten = self._cohorts.forget_idle(key, cohorts, clock_ms)
        row.cohorts -= forgotten
        was_quiet = quiet is not None and quiet.row is row and not forgotten
        self._keep(key, row, value if was_quiet else b"", cohorts)
        for field in _COUNTS:
            setattr(row, field, 0)
        row.former_slices = {}
        self._begin(key, row, clock_ms)

    def _value(self, key: bytes, row: LiveRow, cohorts: list[tuple[bytes, CohortRow]]) -> bytes:
        live = Live(
            schema_version=SCHEMA_VERSION,
            partition=self._context.partition,
            customer_id=key.decode(),
            slices=slices_of(
                self._dimensions,
                self._cohorts.figures_of(cohorts, row.bucket_ms),
                [getattr(row, field) for field in FIELDS],
            ),
            **{field: getattr(row, field) for field in _SHARED_FIELDS},
        )
        return LIVE_CODEC.encode(live)

    def _emit(self, key: bytes, value: bytes) -> None:
        # By key: what all partitions count of a customer meets in one, where alerts judge it as a whole.
        self._context.emit(LIVE, key, value, by_key=True)

    def _begin(self, key: bytes, row: LiveRow, clock_ms: int) -> None:
        """The customer's next bucket begins."""
        row.bucket_ms = _bucket(clock_ms)
        self._rows.put(key, row, row.bucket_ms + BUCKET_MS)

    def _keep(self, key: bytes, row: LiveRow, value: bytes, cohorts: list[tuple[bytes, CohortRow]]) -> None:
        """Notes that nothing was counted since this bucket; `value` is what was emitted of a quiet one, empty for any other."""
        if len(self._quiet) >= _QUIET_MAX:
            self._quiet.clear()
        self._quiet[key] = quiet = _Quiet(row)
        if 0 < len(value) <= _QUIET_BYTES_MAX:
            # The first name of this kind: in a text before it the quotation marks would be escaped.
            before, named, after = value.partition(b'"bucket_ms":')
            quiet.head, quiet.tail = before + named, after[after.index(b",") :]
            quiet.until_ms = self._cohorts.idle_from_ms(cohorts)
            if not row.open_now:
                quiet.until_ms = min(quiet.until_ms, row.active_ms + IDLE_MS)


_SHARED_FIELDS: Final = tuple(
    field
    for field in LiveRow.__struct_fields__
    if field not in ("active_ms", "former_slices", "cohorts", "customer_id")
)
_COUNTS: Final = tuple(field for field in _SHARED_FIELDS if not field.endswith("_now") and field != "bucket_ms")


def _bucket(clock_ms: int) -> int:
    return clock_ms - clock_ms % BUCKET_MS
