"""Live gauges of a partition: one row a customer, sliced by chosen dimensions, emitted and reset every 5 s of the clock."""

from typing import Final

import msgspec

from services.processor.engine.application.application import Context, Store, StoreSpec
from shared.codec import LIVE as LIVE_CODEC
from shared.schemas.live import BUCKET_MS, IDLE_MS, OTHER, SCHEMA_VERSION, SLICE_VALUES_MAX, UNKNOWN, Live, LiveSlice
from shared.topics import LIVE

#: The longest value of a dimension that names a slice; what is longer is cut.
SLICE_VALUE_CHARS_MAX: Final = 64


class SliceRow(msgspec.Struct, array_like=True):
    """The counts of one slice in the open bucket; fields as in `shared.schemas.live.LiveSlice`."""

    active_ms: int
    viewers_now: int = 0
    rebuffering_now: int = 0
    bitrate_bps_now: int = 0
    bitrate_viewers_now: int = 0
    views_finished: int = 0
    playback_failures: int = 0
    startup_failures: int = 0
    exits_before_start: int = 0
    views_started: int = 0


class LiveRow(msgspec.Struct, array_like=True):
    """The counts of one customer in the open bucket; fields as in `shared.schemas.live.Live`."""

    bucket_ms: int
    active_ms: int
    viewers_now: int = 0
    rebuffering_now: int = 0
    open_now: int = 0
    bitrate_bps_now: int = 0
    bitrate_viewers_now: int = 0
    beacons: int = 0
    duplicates: int = 0
    dropped: int = 0
    late: int = 0
    views_started: int = 0
    views_finished: int = 0
    views_revised: int = 0
    playback_failures: int = 0
    startup_failures: int = 0
    exits_before_start: int = 0
    #: By `<dimension>=<value>`.
    slices: dict[str, SliceRow] = {}


STORE: Final = StoreSpec(
    name="live", id=3, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(LiveRow).decode
)


class LiveBoard:
    """Counts into the open bucket of each customer, and emits the bucket when the clock has passed it."""

    def __init__(self, context: Context, dimensions: tuple[str, ...]) -> None:
        self._context = context
        self._dimensions = dimensions
        self._rows: Store[LiveRow] = context.store(STORE)
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
        self._rows.put(key, row, row.bucket_ms + BUCKET_MS)
        return row

    def slices_of(self, row: LiveRow, names: list[str]) -> list[SliceRow]:
        """The named slices of a customer's open bucket, to be counted into."""
        found = []
        for name in names:
            one = row.slices.get(name)
            if one is None:
                one = row.slices[name] = SliceRow(active_ms=row.active_ms)
            one.active_ms = row.active_ms
            found.append(one)
        return found

    @staticmethod
    def slice_name(row: LiveRow, dimension: str, value: str) -> str:
        """The slice a view of this value counts in: its own, or once there are too many, the one of all others."""
        name = f"{dimension}={value[:SLICE_VALUE_CHARS_MAX]}"
        if name in row.slices:
            return name
        known = sum(one.startswith(f"{dimension}=") for one in row.slices)
        return name if known < SLICE_VALUES_MAX else f"{dimension}={OTHER}"

    def fire(self, key: bytes) -> None:
        """The clock has passed the customer's bucket."""
        row = self._rows.get(key)
        if row is None:
            return
        customer_id = key.decode()
        live = Live(
            schema_version=SCHEMA_VERSION,
            partition=self._context.partition,
            customer_id=customer_id,
            slices=self._slices(row),
            **{field: getattr(row, field) for field in _SHARED_FIELDS},
        )
        live_key = f"{live.partition}:{customer_id}:{live.bucket_ms}".encode()
        self._context.emit(LIVE, live_key, LIVE_CODEC.encode(live))
        clock_ms = self._context.clock_ms
        if not row.open_now and clock_ms - row.active_ms > IDLE_MS:
            self._rows.delete(key)
            return
        row.bucket_ms = _bucket(clock_ms)
        for field in _COUNTS:
            setattr(row, field, 0)
        self._begin_slices(row, clock_ms)
        self._rows.put(key, row, row.bucket_ms + BUCKET_MS)

    def _slices(self, row: LiveRow) -> dict[str, LiveSlice]:
        """The slices by name, with one per dimension for the views that do not say a value of it."""
        found = {name: {field: getattr(one, field) for field in _SLICE_FIELDS} for name, one in row.slices.items()}
        for dimension in self._dimensions:
            named = [figures for name, figures in found.items() if name.startswith(f"{dimension}=")]
            rest = {field: getattr(row, field) - sum(one[field] for one in named) for field in _SLICE_FIELDS}
            if any(rest.values()):
                stated = found.get(f"{dimension}={UNKNOWN}", {})
                found[f"{dimension}={UNKNOWN}"] = {field: count + stated.get(field, 0) for field, count in rest.items()}
        return {name: LiveSlice(**figures) for name, figures in sorted(found.items())}

    @staticmethod
    def _begin_slices(row: LiveRow, clock_ms: int) -> None:
        for name, one in list(row.slices.items()):
            if not one.viewers_now and clock_ms - one.active_ms > IDLE_MS:
                del row.slices[name]
                continue
            for field in _SLICE_COUNTS:
                setattr(one, field, 0)


_SLICE_FIELDS: Final = tuple(field for field in SliceRow.__struct_fields__ if field != "active_ms")
_SLICE_COUNTS: Final = tuple(field for field in _SLICE_FIELDS if not field.endswith("_now"))
_SHARED_FIELDS: Final = tuple(field for field in LiveRow.__struct_fields__ if field not in ("active_ms", "slices"))
_COUNTS: Final = tuple(field for field in _SHARED_FIELDS if not field.endswith("_now") and field != "bucket_ms")


def _bucket(clock_ms: int) -> int:
    return clock_ms - clock_ms % BUCKET_MS
