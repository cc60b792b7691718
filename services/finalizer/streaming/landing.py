"""Lands one micro-batch: topic `views` -> Delta -> Postgres. Each step may be repeated.

Spark calls a batch again, with the same offsets, if the process died before the batch was noted as done. A comment beside each step
says what a crash right after it costs.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import structlog
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from services.finalizer.progress import Turn
from services.finalizer.serving.database import Serving
from services.finalizer.serving.published import Slice
from services.finalizer.streaming.batches import timed
from services.finalizer.streaming.kept import keep
from services.finalizer.transforms.forgotten import frame_of, without_forgotten
from services.finalizer.transforms.spark_schema import spark_schema
from services.finalizer.transforms.views import (
    REASONS,
    latest_per_view,
    may_be_stored,
    minute_of_hour,
    parse,
    pieces,
)
from services.finalizer.warehouse import views_table
from services.rim.database.view_rows import COLUMNS, CUT, TEXTS, VIEW_ID_BYTES_MAX
from services.rim.process.crash_points import CrashPoints
from services.rim.telemetry.metrics import begin, counter
from shared.measures import MEMBER_CHARACTERS_MAX
from shared.metrics import FINALIZER_UNPARSED, FINALIZER_VIEWS
from shared.schemas.view import View

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Summary:
    """What a batch holds, known before anything is written."""

    #: Revisions read, of any view.
    revisions: int
    #: Records stored in table `unparsed`, by reason.
    unparsed: dict[str, int]
    #: Their smallest and largest offset, of any partition; None without any.
    unparsed_offsets: tuple[int, int] | None
    #: With the minutes (0 to 59) in which their views count.
    slices: Mapping[Slice, frozenset[int]]
    days: tuple[int, ...]
    #: Of the records of the views that are left when only the newest revision of each is kept.
    size_bytes: int
    #: Whether a view in it may already be in the warehouse, so that its old slice is dirty too.
    revises: bool


#: Of a view whose record is not at hand: more than most have.
RECORD_BYTES_EXPECTED: Final = 8_192
#: Of views whose rows are deleted, which have no bytes.
_ROWS_AT_ONCE: Final = 100_000

#: Of `serving.views`, by `view_rows.COLUMNS`.
Rows = Sequence[Sequence[Any]]


class Landing:
    """The work of a batch of topic `views`."""

    def __init__(
        self,
        location: str,
        serving: Serving,
        *,
        bytes_max: int,
        clock_ms: Callable[[], int],
        crash_points: CrashPoints,
    ) -> None:
        self._location = location
        self._serving = serving
        #: Of the views that are merged, and that the driver holds, at a time.
        self._bytes_max = bytes_max
        self._clock_ms = clock_ms
        self._crash_points = crash_points
        #: Who holds it writes tables of views, and the serving database: a batch, or what follows from batches (`upkeep`).
        self.turn = Turn()
        begin(FINALIZER_UNPARSED, REASONS)

    def __call__(self, batch: DataFrame, batch_id: int) -> int:
        """Lands the batch; returns how many records it held. What it makes dirty is rebuilt by `rebuilding`."""
        with self.turn:
            return self._land(batch, batch_id)

    def _land(self, batch: DataFrame, batch_id: int) -> int:
        spark = batch.sparkSession
        # Kept: else every use would read the offsets from Kafka again.
        with ExitStack() as kept:
            rows = keep(kept, latest_per_view(self._let_in(parse(batch))))
            with timed("read"):
                summary = summarise(rows)
            # 1. Records that cannot be used go to table `unparsed`, each known by its place in the topic: the replay adds nothing.
            if summary.unparsed:
                with timed("unparsed"):
                    views_table.insert_unparsed(
                        spark, self._location, rows, summary.unparsed_offsets, landed_at_ms=self._clock_ms()
                    )
                self._crash_points.reach("unparsed")
            if summary.slices:
                self._mark_and_merge(spark, rows.where(sf.col("reason").isNull()), summary)
        # 5. `rebuilding` rebuilds dirty slices from the views, for several batches at once. The transaction that publishes a
        #    slice clears it, so slices that a crash has left are rebuilt too.
        _count(summary)
        log.info(
            "batch_landed",
            batch_id=batch_id,
            revisions=summary.revisions,
            unparsed=summary.unparsed,
            slices=len(summary.slices),
        )
        return summary.revisions + sum(summary.unparsed.values())

    def _let_in(self, rows: DataFrame) -> DataFrame:
        """Without views of forgotten viewers: what is read of the topic again does not bring them back."""
        forgotten = self._serving.forgotten()
        if not forgotten:
            return rows
        return without_forgotten(rows, frame_of(rows.sparkSession, forgotten))

    def _mark_and_merge(self, spark: SparkSession, views: DataFrame, summary: Summary) -> None:
        # 2. Slices that will change, at old places and new, become durably dirty before anything changes: after the merge
        #    the old places could not be found. A crash here costs a needless rebuild.
        with timed("mark"):
            slices = dict(summary.slices)
            if summary.revises:
                stored = views_table.stored_slices(spark, self._location, views.where(may_be_stored()), summary.days)
                for one, minutes in stored.items():
                    slices[one] = slices.get(one, frozenset()) | minutes
            self._serving.mark_minutes(slices)
        self._crash_points.reach("marked")
        # 3. The merge keeps the newest revision, so the replay changes nothing. A large batch is merged in pieces.
        for piece in pieces(views, summary.size_bytes, self._bytes_max):
            with timed("merge"):
                landed_at_ms = self._clock_ms()
                views_table.merge_views(
                    spark, self._location, piece, summary.days, revises=summary.revises, landed_at_ms=landed_at_ms
                )
                if self._serving.swapped():
                    views_table.merge_beside(spark, self._location, piece, summary.days, landed_at_ms=landed_at_ms)
        self._crash_points.reach("merged")
        # 4. Hot rows keep the newest revision, too. They come before the rollups: so what changes is read from them until
        #    step 5 has published it.
        with timed("look-ups"):
            self.bring_recent(views, summary.size_bytes)

    def bring_recent(self, views: DataFrame, size_bytes: int) -> None:
        """Copies these views, of so many bytes, to the serving database as far as it may keep them. The newest row of each stays.

        The driver holds pieces of about `bytes_max`. May be repeated.
        """
        since_hour = self._serving.views_since()
        if since_hour is None:
            return
        # A later revision may take a view that is kept to an hour that is not.
        views = views.where((sf.col("hour") >= since_hour) | may_be_stored())
        for piece in self._in_parts(_short(views).select(*_recent()), size_bytes):
            self._serving.bring_recent(piece)

    def restate_recent(self, views: DataFrame, size_bytes: int) -> None:
        """Makes the serving database's rows of these views what they are here, whichever is newer. May be repeated.

        Views of which only the key is left have no row any more. Each is restated in one transaction: it counts once all the time.
        """
        since_hour = self._serving.views_since()
        if since_hour is None:
            return
        *columns, document = _recent()
        kept = sf.when(sf.col("hour") >= since_hour, document).alias("document")
        for piece in self._in_parts(_short(views).select(*columns, kept), size_bytes):
            self._serving.restate_recent(piece)

    def _in_parts(self, found: DataFrame, size_bytes: int) -> Iterator[Rows]:
        count = math.ceil(size_bytes / self._bytes_max)
        if count <= 1:
            yield found.collect()
            return
        # One scan, whose result waits on disk: the driver gets a part after the other.
        held: list[Sequence[Any]] = []
        held_bytes = 0
        for row in found.repartition(count).toLocalIterator():
            held.append(row)
            held_bytes += len(row[-1] or "")
            if held_bytes >= self._bytes_max or len(held) >= _ROWS_AT_ONCE:
                yield held
                held, held_bytes = [], 0
        yield held


def _short(views: DataFrame) -> DataFrame:
    return views.where(sf.octet_length("view_id") <= VIEW_ID_BYTES_MAX)


@cache
def _recent() -> Sequence[Column]:
    """A row of `serving.views`."""
    document = sf.to_json(sf.struct(*spark_schema(View).fieldNames())).alias("document")
    return [*(_recent_column(name) for name in COLUMNS[:-1]), document]


def _recent_column(name: str) -> Column:
    if name not in TEXTS:
        return sf.col(name)
    text = sf.substring(name, 1, MEMBER_CHARACTERS_MAX) if name in CUT else sf.col(name)
    return sf.replace(text, sf.lit("\0"), sf.lit("\ufffd")).alias(name)


def summarise(rows: DataFrame) -> Summary:
    """What the reduced rows of a batch hold, in one pass."""
    groups = (
        rows.groupBy("reason", "day", "hour", "customer_id")
        .agg(
            sf.sum("revisions").alias("revisions"),
            sf.sum("record_bytes").alias("size_bytes"),
            sf.bool_or(may_be_stored()).alias("revises"),
            sf.min("kafka_offset").alias("first_offset"),
            sf.max("kafka_offset").alias("last_offset"),
            # Of what is no view the times may be any numbers.
            sf.collect_set(sf.when(sf.col("reason").isNull(), minute_of_hour())).alias("minutes"),
        )
        .collect()
    )
    unparsed: dict[str, int] = {}
    aside = [row for row in groups if row["reason"] is not None]
    for row in aside:
        unparsed[row["reason"]] = unparsed.get(row["reason"], 0) + row["revisions"]
    views = [row for row in groups if row["reason"] is None]
    return Summary(
        revisions=sum(row["revisions"] for row in views),
        unparsed=unparsed,
        unparsed_offsets=(
            (min(row["first_offset"] for row in aside), max(row["last_offset"] for row in aside)) if aside else None
        ),
        slices=_minutes(views),
        days=tuple(sorted({row["day"] for row in views})),
        size_bytes=sum(row["size_bytes"] for row in views),
        revises=any(row["revises"] for row in views),
    )


def _minutes(rows: Iterable[Row]) -> dict[Slice, frozenset[int]]:
    found: dict[Slice, frozenset[int]] = {}
    for row in rows:
        one = Slice(row["hour"], row["customer_id"])
        found[one] = found.get(one, frozenset()).union(row["minutes"])
    return found


def _count(summary: Summary) -> None:
    counter(FINALIZER_VIEWS).inc(summary.revisions)
    for reason, records in summary.unparsed.items():
        counter(FINALIZER_UNPARSED).labels(reason).inc(records)
