"""Finds what is a viewer's, or a customer's, in the warehouse: views, keys of beacons, recorded sessions, records that name one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from services.finalizer.driver import Driver
from services.finalizer.failures import JobFailed
from services.finalizer.progress import step
from services.finalizer.serving.published import Slice
from services.finalizer.serving.refused import hash_of
from services.finalizer.transforms.forgotten import Forgotten
from services.finalizer.transforms.views import DAY_MS
from services.finalizer.warehouse import json_strings, tables
from services.finalizer.warehouse.scan import read_where
from services.finalizer.warehouse.views_table import is_empty, read
from shared.partitioning import api_key, view_key
from shared.sources import SOURCES

#: A record's place in its topic; the append time separates one of a recreated topic from a former one.
PLACE: Final = ("kafka_partition", "kafka_offset", "kafka_timestamp_ms")
#: A viewer with more views than this is no person: name the customer's own id instead of a shared one.
VIEWS_MAX = 100_000
#: A view is open, may be revised and leaves a mark for some two days after its first beacon.
_STATE_DAYS: Final = 8
#: Under which beacons name a viewer: members of every client's.
_VIEWER_MEMBERS: Final = ("viewer_id", "viewer_user_id", "mux_viewer_id", "userId", "deviceId")

#: With one of these a JSON string may be the text without its bytes.
_ESCAPES: Final = (b"\\",)


class TooManyViews(JobFailed):
    """The id fits more views than one viewer has."""


@dataclass(frozen=True)
class Subject:
    """Whose data: a viewer's, known by `viewer_id` or `viewer_user_id`, or (None) the whole customer's."""

    customer_id: str
    viewer: str | None = field(default=None, repr=False)
    #: Recorded sessions that are theirs.
    sessions: Sequence[str] = field(default=(), repr=False)

    @property
    def is_theirs(self) -> Column:
        """Rows with the columns of a view."""
        of_customer = sf.col("customer_id") == self.customer_id
        if self.viewer is None:
            return of_customer
        return of_customer & (
            sf.coalesce(sf.col("viewer_id") == self.viewer, sf.lit(False))
            | sf.coalesce(sf.col("viewer_user_id") == self.viewer, sf.lit(False))
        )

    def forgotten(self, at_ms: int) -> Forgotten:
        """How it is remembered that their views are refused."""
        return Forgotten(self.customer_id, b"" if self.viewer is None else hash_of(self.viewer), at_ms)


@dataclass
class Found:
    """What of a subject is in the tables of views."""

    views: set[tuple[str, int]] = field(default_factory=set)
    keys: set[bytes] = field(default_factory=set)
    slices: set[Slice] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)


def find(driver: Driver, subject: Subject) -> Found:
    """A viewer's views, and the keys of all beacons that belong to them, also of views without a row. Raises `TooManyViews`."""
    spark, warehouse = driver.spark, driver.settings.warehouse_dir
    found = Found()
    for table in (tables.VIEWS, tables.REPROCESSED, tables.REPLACED):
        if is_empty(spark, warehouse, table):
            continue
        step()
        theirs = read_where(spark, warehouse, table, subject.is_theirs)
        for row in theirs.select(*_OF_VIEW).limit(VIEWS_MAX + 1).collect():
            found.views.add((row["view_id"], row["day"]))
            found.keys |= keys_of_view(subject.customer_id, row)
            found.slices.add(Slice(row["hour"], subject.customer_id))
            if row["session_id"]:
                found.sessions.add(row["session_id"])
    assert subject.viewer is not None
    for table in (tables.BRONZE, tables.LATE_RECORDS):
        if is_empty(spark, warehouse, table):
            continue
        step()
        records = read_where(spark, warehouse, table, is_keyed(subject.customer_id))
        named = _naming(records, subject.viewer)
        found.keys |= {bytes(row["key"]) for row in named.select("key").distinct().limit(VIEWS_MAX + 1).collect()}
    if max(len(found.views), len(found.keys)) > VIEWS_MAX:
        raise TooManyViews(f"more than {VIEWS_MAX} views fit: that is no single viewer")
    return found


_OF_VIEW: Final = ("view_id", "day", "view_epoch", "source", "hour", "session_id")


def keys_of(driver: Driver, subject: Subject, found: Found | None, *, now_ms: int) -> Iterator[bytes]:
    """The keys of beacons of which the processor may hold state: of a viewer those of `found`. Raises `TooManyViews`."""
    if subject.viewer is not None:
        yield from sorted((found or find(driver, subject)).keys)
        return
    recent = read(driver.spark, driver.settings.warehouse_dir, tables.BRONZE).where(
        (sf.col("day") >= now_ms // DAY_MS - _STATE_DAYS) & is_keyed(subject.customer_id)
    )
    for row in recent.select("key").distinct().toLocalIterator():
        step()
        yield bytes(row["key"])


def sessions_of(driver: Driver, subject: Subject, of_viewer: Found | None) -> list[str]:
    """Recorded sessions: those that were named, and those of the viewer's views; of a customer all that the index names."""
    found = set(subject.sessions)
    if of_viewer is not None:
        found |= of_viewer.sessions
    elif any(topic.name == tables.RECORDING_INDEX for topic in driver.settings.row_topics):
        index = read(driver.spark, driver.settings.warehouse_dir, tables.ROWS[tables.RECORDING_INDEX])
        own = index.where(sf.col("customer_id") == subject.customer_id).select("session_id").distinct()
        found |= {row["session_id"] for row in own.toLocalIterator()}
    return sorted(found)


def apis_of(driver: Driver, subject: Subject) -> Iterator[bytes]:
    """The keys of a customer's APIs, of which applications may have learned something: those that the warehouse names."""
    if subject.viewer is not None:
        return
    for topic in driver.settings.row_topics:
        table = tables.ROWS[topic.name]
        if {"customer_id", "host"} <= set(table.schema.fieldNames()):
            rows = read(driver.spark, driver.settings.warehouse_dir, table)
            step()
            own = rows.where(sf.col("customer_id") == subject.customer_id).select("host").distinct()
            for row in own.toLocalIterator():
                yield api_key(subject.customer_id, row["host"])


def is_keyed(customer_id: str) -> Column:
    """Records whose key is the customer's."""
    return sf.startswith(sf.col("key"), sf.lit(bytearray(f"{customer_id}:".encode())))


def keys_of_view(customer_id: str, view: Row) -> set[bytes]:
    """The keys of a view's beacons."""
    keys = {view_key(customer_id, view["view_id"])}
    if SOURCES[view["source"]].has_plays and view["view_epoch"] > 1:
        # A later play of a session: its beacons have the session's key, its row a number after it.
        keys.add(view_key(customer_id, view["view_id"].removesuffix(f".{view['view_epoch']}")))
    return keys


def holding(records: DataFrame, *wanted: str) -> DataFrame:
    """The records whose JSON holds each of the texts as a whole string value."""
    return _whose_bytes(records, wanted, json_strings.holds_value, _ESCAPES)


def holding_anywhere(records: DataFrame, wanted: str) -> DataFrame:
    """The same, and those whose bytes are no JSON text and hold it."""
    return _whose_bytes(records, [wanted], json_strings.holds_anywhere, (*_ESCAPES, b"%", b"+"))


def _naming(records: DataFrame, viewer_id: str) -> DataFrame:
    """The beacons that name this viewer."""
    # Not a function of this module, which Spark's Python processes would import for it.
    return _whose_bytes(
        records, [viewer_id], lambda text, wanted: json_strings.holds_member(text, _VIEWER_MEMBERS, wanted), _ESCAPES
    )


def _whose_bytes(
    records: DataFrame, wanted: Sequence[str], holds: Callable[[bytes, str], bool], escapes: Sequence[bytes]
) -> DataFrame:
    """The records whose value `holds` each text; it is asked for values that have the texts' bytes, or one of `escapes`."""

    def kept(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - where the function runs

        for batch in batches:
            values = batch.column("value").to_pylist()
            held = [all(holds(value, one) for one in wanted) for value in values]
            yield batch.filter(pa.array(held, pa.bool_()))

    # Others need no look at every string: an id has its own bytes, or an escape somewhere.
    value = sf.col("value")
    may = reduce(and_, (sf.contains(value, sf.lit(bytearray(one.encode()))) for one in wanted))
    for escape in escapes:
        may |= sf.contains(value, sf.lit(bytearray(escape)))
    columns = [name for name in (*PLACE, "topic", "day", "key", "value") if name in records.columns]
    few = records.where(sf.coalesce(may, sf.lit(False))).select(columns)
    return few.mapInArrow(kept, few.schema)
