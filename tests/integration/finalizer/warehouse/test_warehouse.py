"""The warehouse over its life: viewers forgotten, files compacted, days exported; and open to others."""

import json
import random
import re
import shutil
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import duckdb
import msgspec
import psycopg
import pytest
from pyspark.sql import SparkSession

from services.finalizer import commands
from services.finalizer.__main__ import parser
from services.finalizer.driver import refuse_forgotten
from services.finalizer.jobs import reprocess
from services.finalizer.jobs.deletions.tables import forget
from services.finalizer.jobs.export import export
from services.finalizer.jobs.maintenance import Maintenance
from services.finalizer.serving.fenced import Fenced
from services.finalizer.serving.published import Slice
from services.finalizer.serving.refused import hash_of
from services.finalizer.streaming import rollups, starting
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.table_log import described
from services.finalizer.warehouse.views_table import read
from shared import codec
from shared.schemas.span import SpanFields
from shared.schemas.trace import Trace
from shared.topics import BEACONS, LATE, RECORDING_INDEX, VIEWS
from tests.documents import run_by
from tests.integration.finalizer.expecting import expect_truth
from tests.integration.finalizer.finalizing import HOUR_MS, MORNING_MS, a_view, newest
from tests.integration.finalizer.warehouse.warehousing import (
    DAY_MS,
    NOW_MS,
    Died,
    Warehouse,
    beacons_of,
    finalizer_settings,
    finished,
    generations,
    somewhere,
    viewer_of,
)
from tests.unit.processor.applications.video_views.beacons import T0, mux

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

QUERIES = Path(__file__).parents[4] / "docs" / "query.md"
REPROCESSING = QUERIES.with_name("reprocessing.md")


def test_a_viewer_is_forgotten_in_every_table_and_file_and_nobody_else(warehouse: Warehouse) -> None:
    beacons = beacons_of("abc")
    live = [msgspec.structs.replace(one, viewer_id=viewer_of(one.view_id)) for one in finished(beacons)]
    # Nothing of hers but a beacon in which her id stands, in other bytes; and another customer's viewer of the same id.
    hers = mux(1, "viewstart", 0, view_id="d", mux_viewer_id="viewer b")
    others = msgspec.structs.replace(hers, customer_id="other", view_id="e")
    named = mux(1, "viewstart", 0, view_id="f", **{"viewer b": "x", "video_title": 'not "viewer b", "viewer b'})
    warehouse.land_raw([*beacons, hers, others, named])
    warehouse.land_raw([one for one in beacons if one.view_id == "b"], topic=LATE.name)
    wrong = [
        a_view("g", customer=customer, viewer_user_id=viewer, rebuffer_ms=-1)
        for customer, viewer in (("acme", "viewer b"), ("acme", "viewer b and a"), ("other", "viewer b"))
    ]
    warehouse.land([*live, *wrong])
    reprocess.make(warehouse.spark, warehouse.settings.warehouse_dir, (live[0].day, live[0].day), 2, {})
    driver = warehouse.with_settings(applications="traces")
    (traces,) = driver.settings.row_topics
    named_in = [("acme", "viewer b"), ("acme", "viewer b and a"), ("other", "viewer b")]
    sent = [_trace(customer, viewer) for customer, viewer in named_in]
    warehouse.land_rows(traces, [*sent, *(one.replace(b'"part":1', b'"part":"1"') for one in sent)])

    def count(table: str) -> int:
        return int(warehouse.installation.table(table, "SELECT count(*) FROM t")[0][0])

    assert (count("bronze"), count("late"), count("unparsed")) == (len(beacons) + 3, 10, 3)
    assert (count("traces"), count("unparsed_rows")) == (3, 3)

    # What a writer that died has left in a table without rows.
    place = Path(warehouse.settings.warehouse_dir)
    left = next((place / "late").glob("day=*/*.parquet"))
    (place / "rejected" / left.parent.name).mkdir()
    shutil.copy(left, place / "rejected" / left.parent.name)

    # Also after a death half way: the views go last, since by them the rest is found.
    warehouse.dies.point = "merged"
    with pytest.raises(Died):
        forget(driver, "acme", "viewer b")
    report = forget(driver, "acme", "viewer b")

    assert {name: rows for name, rows in report.rows.items() if rows} == {
        "reprocessed": 1,
        "views": 1,
        "serving.views": 1,
    }
    assert report.slices >= 1
    assert (count("bronze"), count("late"), count("unparsed")) == (len(beacons) + 3 - 11, 0, 2)
    assert (count("traces"), count("unparsed_rows")) == (2, 2)
    kept = [one for one in live if one.view_id != "b"]
    expect_truth(warehouse.installation, newest(kept))
    for path in Path(warehouse.settings.warehouse_dir).rglob("*.parquet"):
        with duckdb.connect() as connection:
            rows = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        theirs = [row for row in rows if re.search(r"""acme.*["']viewer b["'](?!:)""", repr(row))]
        assert not [row for row in theirs if "not " not in repr(row)], f"{path.parent.parent.name} still holds the id"
    # Nor does a table's log: what was deleted by is not in it. (A trace's id is, as a bound of its file: here it is the viewer's.)
    logs = [
        path for path in Path(warehouse.settings.warehouse_dir).glob("*/_delta_log/*.json") if "traces" not in str(path)
    ]
    assert logs
    assert not [path for path in logs if re.search(b"viewer b(?! and)", path.read_bytes())]
    # Who was forgotten does not come back when topic views is read from its beginning, nor from beacons that come again.
    warehouse.land([*live, a_view("b", viewer_id="viewer b", revision=9)])
    expect_truth(warehouse.installation, newest(kept))
    warehouse.land_raw(beacons)
    reprocess.make(warehouse.spark, warehouse.settings.warehouse_dir, (live[0].day, live[0].day), 3, {})
    again = warehouse.installation.table("reprocessed", "SELECT view_id FROM t WHERE generation = 3")
    assert ("b",) not in again
    assert again
    # A serving database that was lost and made again knows it, too.
    known = driver.serving.forgotten()
    assert [(one.customer_id, one.viewer) for one in known] == [("acme", hash_of("viewer b"))]
    with psycopg.connect(warehouse.installation.dsn, autocommit=True) as connection:
        connection.execute("DELETE FROM serving.forgotten")
    refuse_forgotten(warehouse.spark, warehouse.settings.warehouse_dir, driver.serving)
    assert driver.serving.forgotten() == known
    # A view that began after it is a view of somebody who came back.
    assert known[0].forgotten_ms > live[0].first_append_ms
    back_ms = known[0].forgotten_ms + 1
    back = a_view(
        "back",
        viewer_id="viewer b",
        first_append_ms=back_ms,
        last_append_ms=back_ms,
        view_end_ms=back_ms,
        day=back_ms // DAY_MS,
    )
    warehouse.land([back], rebuilds=False)
    assert warehouse.installation.table("views", "SELECT count(*) FROM t WHERE view_id = 'back'") == [(1,)]


def _trace(customer: str, viewer: str) -> bytes:
    """A trace in which a viewer is named."""
    span = SpanFields(span_id="1" * 16, name="GET", service="shop", start_us=1, duration_us=2, attrs={"who": viewer})
    return codec.TRACE.encode(
        Trace(schema_version=1, customer_id=customer, trace_id=viewer, part=1, revision=1, spans=[span])
    )


def test_small_files_are_joined_old_rows_deleted_and_nothing_else_changes(warehouse: Warehouse) -> None:
    old = [a_view(f"old-{n}", day=MORNING_MS // DAY_MS + n % 3) for n in range(9)]
    recent_ms = NOW_MS - 40 * DAY_MS
    recent = [
        a_view(
            f"new-{n}",
            day=recent_ms // DAY_MS,
            first_append_ms=recent_ms,
            last_append_ms=recent_ms,
            view_end_ms=recent_ms + n,
        )
        for n in range(6)
    ]
    # A batch writes a file for each of its days.
    for number in range(3):
        warehouse.land([*old[3 * number :][:3], *recent[2 * number :][:2]], rebuilds=False)
    warehouse.driver.rebuilding.rebuild_dirty(warehouse.spark, "test")
    place = Path(warehouse.settings.warehouse_dir)
    assert len(list((place / "views").glob("day=*/*.parquet"))) >= 10

    # A file that is lost stops the table that it was of, and no other.
    for number in range(2):
        warehouse.land_raw([mux(number, "viewstart", number, view_id="late")], topic=LATE.name)
    next((place / "late").glob("day=*/*.parquet")).unlink()

    driver = warehouse.with_settings(views_days=100, rollups_days=90, minutes_days=30, recent_days=100)
    stop = threading.Event()
    round_ = Maintenance.of(driver.settings, tables.OF_VIEWS, lambda: NOW_MS, stop, serving=driver.serving)
    assert round_.run(warehouse.spark) == ["late"]

    def count(table: str, where: str = "true") -> int:
        return int(warehouse.installation.table(table, f"SELECT count(*) FROM t WHERE {where}")[0][0])

    assert sorted(generations(warehouse)) == sorted(one.view_id for one in recent)
    assert (count("rollups", "grain = 'minute'"), count("rollups", "grain = 'day' AND dimensions = ''")) == (0, 1)
    assert warehouse.installation.serving("SELECT sum(views)::int FROM serving.rollups_hourly") == [(6,)]
    assert warehouse.installation.serving("SELECT count(*)::int FROM serving.views") == [(6,)]
    files = warehouse.spark.sql(f"DESCRIBE DETAIL {tables.VIEWS.sql_name(str(place))}").collect()[0]["numFiles"]
    assert files == 1


def test_what_the_documents_show_can_be_run(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)
    views = [somewhere(chance, f"view-{number}", revision=1) for number in range(40)]
    warehouse.land(views)
    monkeypatch.setenv("FINALIZER_WAREHOUSE_DIR", warehouse.settings.warehouse_dir)
    shown = run_by(__file__, "python")
    assert len(shown) >= 4
    names: dict[str, object] = {}
    for block in shown:
        exec(compile(block.text, block.place, "exec"), names)  # one after the other, as a reader would
    assert names["views_counted"] == len(views)
    quantiles = names["startup_quantiles"]
    assert isinstance(quantiles, dict)
    exact = sorted(one.startup_ms for one in views if one.startup_ms is not None)
    assert quantiles[0.5] == pytest.approx(exact[(len(exact) - 1) // 2], rel=0.011)
    by_cdn = names["startup_by_cdn"]
    assert isinstance(by_cdn, list)
    assert {row["cdn"]: row["views"] for row in by_cdn} == Counter(one.cdn for one in views)


def test_the_commands_that_the_documents_show_do_what_they_say(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "writing", lambda *_: nullcontext(warehouse.driver))
    monkeypatch.setattr(commands, "spark_session", lambda _: nullcontext(warehouse.spark))

    def run(line: str) -> str:
        """Runs a line as a shell would, within this process; returns what it prints."""
        before, after = line.strip().split("python -m services.finalizer ")
        environ = dict(pair.split("=", 1) for pair in before.split())
        given = parser().parse_args(after.replace("/tmp/", f"{tmp_path}/").split())
        given.run(commands.Job(warehouse.settings, threading.Event(), given, environ))
        return capsys.readouterr().out

    # A view of the document's Monday that starts after three seconds: good, until good means within two.
    monday = MORNING_MS - T0
    beacons = [
        mux(2, "heartbeat", monday - 2 * DAY_MS, view_id="no view"),
        mux(1, "viewstart", monday, view_id="slow", view_start=MORNING_MS),
        mux(2, "playing", monday + 3_000, view_id="slow", view_time_to_first_frame=3_000),
        mux(3, "viewend", monday + 60_000, view_id="slow", view_watch_time=60_000),
        mux(1, "viewstart", monday + HOUR_MS, view_id="last"),
    ]
    warehouse.land_raw(beacons)
    (live,) = finished(beacons)
    assert live.spi_good
    warehouse.land([live])

    shown = (line for page in (QUERIES, REPROCESSING) for line in page.read_text().splitlines())
    exports = [line for line in shown if "python -m services.finalizer" in line]
    *exports, reprocess_line, compare_line, swap_line = exports
    # The log's lines come before.
    assert [run(line).splitlines()[-1].split()[0] for line in exports] == ["1", "9"]
    assert "spi_good differs in 1" in run(reprocess_line)
    assert "spi_good differs in 1" in run(compare_line)
    assert _good(warehouse) == [(1, True)]
    assert "1 views of generation 2" in run(swap_line)
    assert _good(warehouse) == [(2, False)]
    run("python -m services.finalizer swap-back --generation 2")
    assert _good(warehouse) == [(1, True)]


def _good(warehouse: Warehouse) -> list[tuple[object, ...]]:
    return warehouse.installation.table("views", "SELECT generation, spi_good FROM t")


def test_a_table_of_the_last_release_gains_what_this_one_has(spark: SparkSession, tmp_path: Path) -> None:
    previous = json.loads((Path(__file__).parents[3] / "fixtures" / "warehouse-schema.json").read_text())
    for name, layout in previous.items():
        columns = ", ".join(f"`{column}` {kind}" for column, kind in layout["columns"].items())
        parts = f" PARTITIONED BY ({', '.join(layout['partition_by'])})" if layout["partition_by"] else ""
        spark.sql(f"CREATE TABLE delta.`{tmp_path}/{name}` ({columns}) USING delta{parts}")
    spark.sql(
        f"INSERT INTO delta.`{tmp_path}/bronze` (topic, kafka_partition, kafka_offset, day) VALUES ('b', 3, 16, 1)"
    )

    tables.ensure(spark, str(tmp_path), auto_compact=False)

    for table in tables.OF_VIEWS:
        assert set(spark.read.format("delta").load(table.path(str(tmp_path))).columns) == set(table.columns())
        properties = spark.sql(f"SHOW TBLPROPERTIES {table.sql_name(str(tmp_path))}").collect()
        shown = {(row["key"], row["value"]) for row in properties}
        assert table.properties.items() <= shown
        # What the log says is what Spark says.
        there = described(spark, table.path(str(tmp_path)))
        assert there is not None
        assert (
            there.schema.simpleString()
            == spark.read.format("delta").load(table.path(str(tmp_path))).schema.simpleString()
        )
        assert table.properties.items() <= there.properties.items() <= shown
    detail = spark.sql(f"DESCRIBE DETAIL {tables.BRONZE.sql_name(str(tmp_path))}").collect()[0]
    assert id_of(spark, tmp_path / "bronze") == detail["id"]
    # A folder that is not there, and one where the creation of a table was cut off.
    (tmp_path / "begun" / "_delta_log").mkdir(parents=True)
    assert id_of(spark, tmp_path / "none") is id_of(spark, tmp_path / "begun") is None
    # What it held goes on to count.
    assert starting.held(spark, str(tmp_path), tables.BRONZE, "topic") == {3: 17}


def id_of(spark: SparkSession, path: Path) -> str | None:
    there = described(spark, str(path))
    return None if there is None else there.id


def test_where_streams_had_landed_is_known_without_the_rows_and_the_checkpoint(
    spark: SparkSession, tmp_path: Path, empty_tables: Path
) -> None:
    settings = finalizer_settings(tmp_path, "postgresql://u@db", applications="recordings")
    shutil.copytree(empty_tables, settings.warehouse_dir)
    tables.ensure(spark, settings.warehouse_dir, auto_compact=False, rows_of=settings.row_topics)
    spark.sql(
        f"INSERT INTO {tables.BRONZE.sql_name(settings.warehouse_dir)} (topic, kafka_partition, kafka_offset, day, topic_id)"
        " VALUES ('beacons', 0, 16, 1, 'id'), ('beacons', 1, 99, 1, 'id')"
    )
    for name, topic in (("bronze", BEACONS.name), ("recording_index", RECORDING_INDEX.name), ("views", VIEWS.name)):
        folder = Path(settings.checkpoint_dir) / name
        for file, text in (
            ("identity.json", json.dumps({"format": 2, "warehouse": "w", "topics": {topic: "id"}})),
            ("offsets/3", f'v1\n{{}}\n{{"{topic}":{{"0":20,"1":40}}}}'),
            ("commits/3", "v1\n{}"),
        ):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)

    starting.note_landed(spark, settings)
    shutil.rmtree(settings.checkpoint_dir)

    def known(topic: str, topic_id: str = "id") -> Mapping[int, int]:
        return starting.landed_before(spark, settings.warehouse_dir, topic, topic_id)

    # What came after the note still has its rows.
    assert known(BEACONS.name) == {0: 20, 1: 100}
    assert known(VIEWS.name) == known(RECORDING_INDEX.name) == {0: 20, 1: 40}
    # Of a topic that was recreated nothing has landed, and of one without a checkpoint nothing is known.
    assert known(VIEWS.name, "recreated") == known(LATE.name) == {}


def test_a_day_is_exported_to_files_that_other_tools_read(warehouse: Warehouse, tmp_path: Path) -> None:
    awkward = 'a "quoted", line\nbroken title'
    views = [a_view("one", video_title=awkward, custom={"plan": "gold"}), a_view("gone", deleted=True)]
    other_day = a_view("other", day=MORNING_MS // DAY_MS + 1)
    warehouse.land([*views, other_day], rebuilds=False)
    # Bytes that fill more than a line of base64.
    long = mux(1, "viewstart", 0, view_id="long", video_title="x" * 500)
    warehouse.land_raw([long])
    table = tables.VIEWS.path(warehouse.settings.warehouse_dir)
    bronze = tables.BRONZE.path(warehouse.settings.warehouse_dir)
    for file_format, reader, bytes_of in (
        ("csv", "read_csv", "from_base64(value)"),
        ("parquet", "read_parquet", "value"),
    ):
        folder, records = tmp_path / f"views-{file_format}", tmp_path / f"records-{file_format}"

        rows = export(warehouse.spark, table, MORNING_MS // DAY_MS, to=str(folder), file_format=file_format)

        with duckdb.connect() as connection:
            query = f"SELECT view_id, video_title, custom::text FROM {reader}('{folder}/*.{file_format}')"
            found = connection.execute(query).fetchall()
        assert rows == len(found) == 1, file_format
        assert found[0][:2] == ("one", awkward), file_format
        assert "gold" in found[0][2], file_format
        assert export(warehouse.spark, bronze, T0 // DAY_MS, to=str(records), file_format=file_format) == 1
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT {bytes_of} FROM {reader}('{records}/*.{file_format}')").fetchall()
        assert found == [(codec.BEACON.encode(long),)], file_format
        with pytest.raises(FileExistsError, match="exists"):
            export(warehouse.spark, table, 1, to=str(folder), file_format=file_format)


def test_the_serving_database_of_a_stopped_finalizer_refuses_it(warehouse: Warehouse) -> None:
    with psycopg.connect(warehouse.settings.postgres_dsn.get_secret_value()) as connection:
        connection.execute("UPDATE finalizer.fence SET epoch = epoch + 1")
    with pytest.raises(Fenced, match="is held by"):
        warehouse.land([a_view("one")])


def test_rollups_of_a_driver_that_was_overtaken_are_not_written(warehouse: Warehouse) -> None:
    """Paused between its reads and its commit, it would replace newer hours by what it knew."""
    settings, wanted = warehouse.settings, [Slice(MORNING_MS // HOUR_MS, "acme")]
    warehouse.land([a_view("one")], rebuilds=False)
    older = warehouse.driver.serving.next_version()
    warehouse.land([a_view("two")])

    def rebuilt(version: int) -> int:
        rollups.rebuild(warehouse.spark, settings.warehouse_dir, wanted, settings.sets, version=version)
        stored = read(warehouse.spark, settings.warehouse_dir, tables.ROLLUPS)
        of_hour = stored.where("grain = 'hour' AND dimensions = ''").select("views").collect()
        return sum(row["views"] for row in of_hour)

    views = tables.VIEWS.sql_name(settings.warehouse_dir)
    warehouse.spark.sql(f"DELETE FROM {views} WHERE view_id = 'two'")  # What the older one has read.
    assert rebuilt(older) == 2
    warehouse.driver.serving.open()
    assert rebuilt(warehouse.driver.serving.next_version()) == 1
