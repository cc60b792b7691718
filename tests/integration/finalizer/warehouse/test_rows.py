"""What applications emit, in the warehouse: each row once, the newest revision, also if records land again."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from services.finalizer import row_topics
from services.finalizer.streaming.rows import RowLanding
from services.finalizer.warehouse import tables
from shared import codec
from shared.schemas.apis.anomaly import ApiAnomaly, Evidence
from shared.schemas.apis.change import ApiChange
from shared.schemas.span import SpanFields
from shared.schemas.trace import Trace, TraceService
from shared.schemas.user import User
from tests.integration.finalizer.finalizing import Installation
from tests.integration.finalizer.warehouse.warehousing import Died, Dies

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

NOW_MS = 1_790_100_000_000
DAY_MS = 86_400_000
_SCHEMA = "topic string, partition int, offset long, at_ms long, key binary, value binary"
TOPICS = ("traces", "api_anomalies", "api_changes", "users")
_BY_NAME = {topic.name: topic for topic in row_topics.ALL}
#: A record's place and append time, and its value.
Placed = tuple[int, int, bytes | None]


@dataclass
class Rows:
    """Landings of topics of rows, by the batch, in a warehouse of one's own."""

    spark: SparkSession
    folder: Path
    empty_tables: Path
    dies: Dies = field(default_factory=Dies)

    def __post_init__(self) -> None:
        shutil.copytree(self.empty_tables, self._warehouse)
        tables.ensure(self.spark, self._warehouse, auto_compact=False, rows_of=[_BY_NAME[name] for name in TOPICS])

    @property
    def _warehouse(self) -> str:
        return str(self.folder / "warehouse")

    def land(self, topic: str, placed: Sequence[Placed], *, key: bytes = b"key", batch_id: int = 0) -> int:
        rows = [
            (topic, 0, offset, at_ms, bytearray(key), None if value is None else bytearray(value))
            for offset, at_ms, value in placed
        ]
        frame = self.spark.createDataFrame(rows, _SCHEMA)
        batch = frame.withColumn("timestamp", sf.timestamp_millis("at_ms")).drop("at_ms")
        landing = RowLanding(self._warehouse, _BY_NAME[topic], clock_ms=lambda: NOW_MS, crash_points=self.dies)
        return landing(batch, batch_id)

    def read(self, table: str, query: str) -> list[tuple[Any, ...]]:
        return Installation(self.folder, "", "").table(table, query)


def trace(trace_id: str, revision: int, **fields: Any) -> bytes:
    given: dict[str, Any] = {"span_count": revision} | fields
    return codec.TRACE.encode(
        Trace(schema_version=1, customer_id="acme", trace_id=trace_id, part=1, revision=revision, **given)
    )


def anomaly(revision: int, *, opened_ms: int = NOW_MS, state: Any = "open") -> bytes:
    evidence = Evidence(
        window_start_ms=opened_ms, figure="p95", direction="above", value=9.5, usual=1.5, score=8.0,
        probability=1e-9, calls=40, usual_windows=24, season="hour_of_day",
    )  # fmt: skip
    row = ApiAnomaly(
        schema_version=1, customer_id="acme", host="h", method="GET", path="/", measure="latency", opened_ms=opened_ms,
        revision=revision, state=state, end_reason=None, last_ms=opened_ms, window_ms=60_000, windows=revision,
        latest=evidence, worst=evidence,
    )  # fmt: skip
    return codec.API_ANOMALY.encode(row)


def user(version: int) -> bytes:
    return msgspec.json.encode(
        User(
            id="7" * 32,
            email="a@b.example",
            name=f"n{version}",
            attributes={"a": "b"},
            version=version,
            created_ms=1,
            updated_ms=2,
        )
    )


def test_rows_of_applications_stand_once_and_as_their_newest_revision(
    spark: SparkSession, tmp_path: Path, empty_tables: Path
) -> None:
    rows = Rows(spark, tmp_path, empty_tables)
    span = SpanFields(span_id="1" * 16, name="GET", service="shop", start_us=1, duration_us=2, attrs={"a": {"b": 1}})
    first = [
        (0, NOW_MS, trace("a", 2, services=[TraceService("shop", 1, 0, 5)], spans=[span])),
        (1, NOW_MS, trace("a", 1)),
        (2, NOW_MS, trace("b", 1)),
        (3, NOW_MS, b"{"),
        (4, NOW_MS, b"\xff"),
        (5, NOW_MS, trace("c", 1).replace(b'"schema_version":1', b'"schema_version":2')),
        (6, NOW_MS, b'{"schema_version":1}'),
    ]
    rows.dies.point = "unparsed"
    with pytest.raises(Died):
        rows.land("traces", first)
    assert rows.land("traces", first) == len(first)
    # All again, as a new checkpoint gives it, and revisions from over midnight: they stay under their row's day.
    more = [*first, (7, NOW_MS + DAY_MS, trace("b", 3)), (8, NOW_MS, trace("b", 2))]
    assert rows.land("traces", more, batch_id=1) == len(more)
    assert rows.read("traces", "SELECT trace_id, revision, span_count, day, kafka_offset FROM t ORDER BY 1") == [
        ("a", 2, 2, NOW_MS // DAY_MS, 0),
        ("b", 3, 3, NOW_MS // DAY_MS, 7),
    ]
    ((services, spans),) = rows.read("traces", "SELECT services, spans FROM t WHERE trace_id = 'a'")
    assert services == [{"name": "shop", "spans": 1, "errors": 0, "critical_us": 5}]
    assert msgspec.json.decode(spans, type=list[SpanFields]) == [span]
    assert rows.read("unparsed_rows", "SELECT topic, kafka_offset, reason, value FROM t ORDER BY 2") == [
        ("traces", 3, "undecodable", b"{"),
        ("traces", 4, "undecodable", b"\xff"),
        ("traces", 5, "unknown_version", first[5][2]),
        ("traces", 6, "invalid", first[6][2]),
    ]

    # An anomaly's day is that of its opening, whenever its revisions come.
    rows.land("api_anomalies", [(0, NOW_MS, anomaly(1)), (1, NOW_MS, anomaly(1, opened_ms=NOW_MS - DAY_MS))])
    rows.land("api_anomalies", [(2, NOW_MS + 3 * DAY_MS, anomaly(5, state="closed"))])
    assert rows.read("api_anomalies", "SELECT opened_ms, revision, state, latest.figure FROM t ORDER BY 1") == [
        (NOW_MS - DAY_MS, 1, "open", "p95"),
        (NOW_MS, 5, "closed", "p95"),
    ]

    # What is never revised is known by its place, however alike.
    change = ApiChange(
        schema_version=1, customer_id="acme", host="h", kind="new_endpoint", method="GET", path="/", at_ms=1
    )
    encoded = codec.API_CHANGE.encode(change)
    rows.land("api_changes", [(0, NOW_MS, encoded), (1, NOW_MS, encoded)])
    # The last one: a topic that was recreated counts from 0 again.
    rows.land("api_changes", [(1, NOW_MS, encoded), (2, NOW_MS, encoded), (0, NOW_MS + 5, encoded)])
    assert rows.read("api_changes", "SELECT count(*), count(DISTINCT kind) FROM t") == [(4, 1)]

    # A table of a compacted topic: the newest record of a key, and a tombstone marks the row.
    key = b"7" * 32
    rows.land("users", [(5, NOW_MS + 5, user(2)), (4, NOW_MS + 5, user(1))], key=key)
    assert rows.read("users", "SELECT name, version, deleted FROM t") == [("n2", 2, False)]
    rows.land("users", [(5, NOW_MS + 5, user(2)), (6, NOW_MS + 6, None)], key=key)
    assert rows.read("users", "SELECT id, name, deleted FROM t") == [("7" * 32, None, True)]
