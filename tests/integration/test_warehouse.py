"""The warehouse over its life: restated, reprocessed, swapped, forgotten, compacted, exported; and open to others."""

import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from uuid import uuid4

import duckdb
import msgspec
import psycopg
import pytest
from pyspark.sql import SparkSession

from deploy.local.postgres import Postgres
from services.finalizer import commands, tables
from services.finalizer.__main__ import parser
from services.finalizer.jobs import raw, reprocess, swap
from services.finalizer.jobs.compare import compare
from services.finalizer.jobs.export import export
from services.finalizer.jobs.forget import forget
from services.finalizer.jobs.maintenance import Maintenance
from services.finalizer.jobs.reprocess import BeaconsGone, GenerationSwapped, Made, NothingReprocessed
from services.finalizer.jobs.swap import SwapOutOfOrder
from services.finalizer.serving import Fenced
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.driver import Driver as Fold
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from shared.topics import LATE
from tests.integration.finalizing import HOUR_MS, MORNING_MS, a_view, expect_truth, newest
from tests.integration.warehousing import NOW_MS, Died, Warehouse, finalizer_settings
from tests.unit.processor.video_views.beacons import T0, cmcd, mux, watch

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

QUERIES = Path(__file__).parents[2] / "docs" / "query.md"
REPROCESSING = QUERIES.with_name("reprocessing.md")
DAY_MS = 24 * HOUR_MS


@pytest.fixture
def warehouse(tmp_path: Path, spark: SparkSession, postgres: Postgres) -> Iterator[Warehouse]:
    """An empty one."""
    dsn = postgres.create_database(f"warehouse_{uuid4().hex}")
    opened = Warehouse(spark, finalizer_settings(tmp_path, dsn, slices_max="7"), tmp_path)
    yield opened
    opened.close()


def test_old_days_restated_in_any_order_leave_what_a_full_recount_gives(warehouse: Warehouse) -> None:
    chance = random.Random(5)
    first = [_somewhere(chance, f"view-{number}", revision=1) for number in range(60)]
    warehouse.land(first)
    told = list(first)
    for dies_at in ("merged", "rebuilt", "published"):
        # Revisions that move to other hours and days, take views back, or bring old news; each death leaves dirty slices.
        restated = [
            _somewhere(chance, one.view_id, revision=chance.randint(1, 5), deleted=chance.random() < 0.2)
            for one in chance.sample(told, 15)
        ]
        told += restated
        warehouse.land(restated, dies_at=dies_at)
    expect_truth(warehouse.installation, newest(told))


def _somewhere(chance: random.Random, name: str, revision: int, *, deleted: bool = False) -> View:
    """A revision of a view that ended at some hour of four days. Its partition day depends on its name alone."""
    began = random.Random(name).randrange(3)
    return a_view(
        name,
        customer=f"customer_{len(name) % 3}",
        # Of one revision there is one row.
        revision=revision * 1_000_000 + chance.randrange(1_000_000),
        hour=24 * began + chance.randrange(30),
        day=MORNING_MS // DAY_MS + began,
        first_append_ms=MORNING_MS + began * DAY_MS,
        last_append_ms=MORNING_MS + began * DAY_MS + 30 * HOUR_MS,
        deleted=deleted,
        cdn=chance.choice(["fast", "near", None]),
        country="DE",
        startup_ms=chance.randrange(5_000),
        watch_ms=chance.randrange(600_000),
    )


def test_a_generation_is_made_from_bronze_compared_swapped_in_and_taken_back(warehouse: Warehouse) -> None:
    spark, place = warehouse.spark, warehouse.settings.warehouse_dir
    live = []
    for partition, names in ((0, "abc"), (5, "xyz")):
        beacons = _beacons(names)
        warehouse.land_raw(beacons, partition=partition)
        live += _finished(beacons)
    warehouse.land(live)
    day = live[0].day

    # The same formula gives the same rows, field by field.
    assert reprocess.make(spark, place, (day, day), 2, {}) == Made(len(live), 0) == (6, 0)
    same = compare(spark, place, 2)
    assert (same.same, same.changed, same.added, same.not_made, same.partial) == (6, 0, 0, 0, 0)
    # Another one: a good view may rebuffer for half of its time.
    good = {"VIDEO_VIEWS_GOOD_REBUFFER_SHARE_MAX": "0.5"}
    assert reprocess.make(spark, place, (day, day), 2, good) == (6, 0)
    difference = compare(spark, place, 2)
    assert (difference.changed, dict(difference.columns)) == (6, {"spi_good": 6})
    assert all(now == then for now, then in difference.sums.values())
    expect_truth(warehouse.installation, newest(live))

    # A processor of the new generation was quicker: what it says of a view knows more than bronze did.
    quicker = msgspec.structs.replace(live[2], generation=2, revision=1, watch_ms=76)
    warehouse.land([quicker])
    difference = compare(spark, place, 2)
    assert (difference.same, difference.changed) == (1, 5)
    assert difference.sums["watch_ms"][0] == difference.sums["watch_ms"][1]
    # A death in the swap, then the swap.
    warehouse.dies.point = "merged"
    with pytest.raises(Died):
        swap.swap(warehouse.driver, 2)
    assert swap.swap(warehouse.driver, 2) == 6
    swapped = [msgspec.structs.replace(one, generation=2, revision=0, spi_good=True) for one in live]
    expect_truth(warehouse.installation, newest([*swapped, quicker]))
    with pytest.raises(GenerationSwapped, match="make a larger one"):
        reprocess.make(spark, place, (day, day), 2, {})

    # What arrives meanwhile: of the former generation (late), of the new one, and a view that nobody knew.
    former = msgspec.structs.replace(live[0], revision=2, watch_ms=77)
    new = msgspec.structs.replace(live[1], generation=2, revision=1, watch_ms=78)
    unknown = a_view("unknown", day=day, first_append_ms=day * DAY_MS, last_append_ms=day * DAY_MS)
    warehouse.land([former, new, unknown])
    after_swap = newest([*swapped, quicker, former, new, unknown])
    expect_truth(warehouse.installation, after_swap)
    assert _generations(warehouse) == {"a": 2, "b": 2, "c": 2, "unknown": 1, "x": 2, "y": 2, "z": 2}

    # Another one on top: the newest is taken back first.
    assert reprocess.make(spark, place, (day, day), 3, {}) == (6, 0)
    assert swap.swap(warehouse.driver, 3) == 6
    with pytest.raises(SwapOutOfOrder, match="swap-back --generation 3 first"):
        swap.swap_back(warehouse.driver, 2)
    with pytest.raises(SwapOutOfOrder, match="generation 3 is swapped in"):
        swap.swap(warehouse.driver, 2)
    swap.swap_back(warehouse.driver, 3)
    expect_truth(warehouse.installation, after_swap)
    with pytest.raises(SwapOutOfOrder, match="not swapped in"):
        swap.swap_back(warehouse.driver, 3)

    # Taken back, also after a death in it, nothing that came is lost.
    warehouse.dies.point = "merged"
    with pytest.raises(Died):
        swap.swap_back(warehouse.driver, 2)
    swap.swap_back(warehouse.driver, 2)
    assert _generations(warehouse) == {"a": 1, "b": 2, "c": 2, "unknown": 1, "x": 1, "y": 1, "z": 1}
    expect_truth(warehouse.installation, newest([*live, quicker, former, new, unknown]))
    with pytest.raises(NothingReprocessed, match="generation 4"):
        compare(spark, place, 4)


def test_views_of_which_bronze_has_only_a_part_keep_the_rows_they_have(warehouse: Warehouse) -> None:
    spark, place = warehouse.spark, warehouse.settings.warehouse_dir
    # One from the evening before into the night, told minute by minute; one that gets a revision that bronze has not yet.
    evening = -15 * HOUR_MS
    cut = [
        cmcd(n, "playing" if n == 0 else "heartbeat", evening + n * 120_000, view_id="cut", sta="p") for n in range(60)
    ]
    beacons = [*cut, *_beacons("ab")]
    warehouse.land_raw(beacons)
    live = _finished(beacons)
    day = T0 // DAY_MS
    assert {one.view_id: one.day for one in live} == {"cut": day - 1, "a": day, "b": day}
    later = msgspec.structs.replace(
        next(one for one in live if one.view_id == "b"), revision=9, watch_ms=99, last_append_ms=T0 + 4 * HOUR_MS
    )
    warehouse.land([*live, later])
    assert reprocess.make(spark, place, (day, day), 2, {}) == (1, 1)
    assert reprocess.make(spark, place, (day - 1, day), 2, {}) == (2, 1)

    # Retention passes: of the first view there is a rest, which would make a view of another day.
    spark.sql(f"DELETE FROM {tables.BRONZE.sql_name(place)} WHERE day < {day}")
    with pytest.raises(BeaconsGone, match="reprocess --from 2026-09-21"):
        reprocess.make(spark, place, (day - 1, day), 3, {})
    assert reprocess.make(spark, place, (day, day), 3, {}) == (1, 2)
    told = compare(spark, place, 3)
    assert (told.same, told.changed, told.added, told.not_made, told.partial) == (1, 0, 0, 0, 2)
    assert any("2 kept as they are" in line for line in told.lines())
    swap.swap(warehouse.driver, 3)
    again = msgspec.structs.replace(next(one for one in live if one.view_id == "a"), generation=3, revision=0)
    expect_truth(warehouse.installation, newest([*live, later, again]))

    # What a table holds of a topic that was made anew is told apart from the former one's: their offsets overlap.
    assert raw.held(spark, place, tables.BRONZE, "topic") == {0: len(beacons)}
    assert raw.held(spark, place, tables.BRONZE, "made anew") == {}
    warehouse.land_raw(_beacons("c")[:2], topic_id="made anew")
    assert raw.held(spark, place, tables.BRONZE, "made anew")[0] > len(beacons)
    assert raw.held(spark, place, tables.BRONZE, "topic") == {0: len(beacons)}


def _generations(warehouse: Warehouse) -> dict[str, int]:
    return dict(warehouse.installation.table("views", "SELECT view_id, generation FROM t"))


def _beacons(names: str) -> list[Beacon]:
    """A whole view for each name, a minute apart, then a beacon of hours later that lets the clock run."""
    found = []
    for number, name in enumerate(names):
        for one in watch():
            at_ms = one.client_time_ms - T0 + number * 60_000
            viewer = {"mux_viewer_id": _viewer(name)} if one.event == "viewstart" else {}
            found.append(mux(one.seq or 0, one.event, at_ms, view_id=name, **one.attrs | viewer))
    return [*found, mux(1, "viewstart", 3 * HOUR_MS, view_id="last")]


def _viewer(name: str) -> str:
    """The id of the viewer of a view: one of them is part of the others."""
    return "viewer b" if name == "b" else f"viewer b and {name}"


def _finished(beacons: list[Beacon]) -> list[View]:
    """What the processor makes of them."""
    fold = Fold(APPLICATIONS["video_views"]({}))
    for one in beacons:
        key = view_key(one.customer_id, one.view_id)
        fold.pipe(topics.BEACONS, key, codec.BEACON.encode(one), at_ms=one.client_time_ms + 2_000)
    return [codec.VIEW.decode(output.value) for output in fold.outputs(topics.VIEWS)]


def test_a_viewer_is_forgotten_in_every_table_and_file_and_nobody_else(warehouse: Warehouse) -> None:
    beacons = _beacons("abc")
    live = [msgspec.structs.replace(one, viewer_id=_viewer(one.view_id)) for one in _finished(beacons)]
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

    def count(table: str) -> int:
        return int(warehouse.installation.table(table, "SELECT count(*) FROM t")[0][0])

    assert (count("bronze"), count("late"), count("unparsed")) == (len(beacons) + 3, 10, 3)

    # Also after a death half way: the views go last, since by them the rest is found.
    warehouse.dies.point = "merged"
    with pytest.raises(Died):
        forget(warehouse.driver, "acme", "viewer b")
    report = forget(warehouse.driver, "acme", "viewer b")

    assert {name: rows for name, rows in report.rows.items() if rows} == {
        "reprocessed": 1,
        "views": 1,
        "serving.views": 1,
    }
    assert report.slices >= 1
    assert (count("bronze"), count("late"), count("unparsed")) == (len(beacons) + 3 - 11, 0, 2)
    kept = [one for one in live if one.view_id != "b"]
    expect_truth(warehouse.installation, newest(kept))
    assert not any("viewer b" in line for line in report.lines())
    for path in Path(warehouse.settings.warehouse_dir).rglob("*.parquet"):
        with duckdb.connect() as connection:
            rows = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        theirs = [row for row in rows if re.search(r"""acme.*["']viewer b["'](?!:)""", repr(row))]
        assert not [row for row in theirs if "not " not in repr(row)], f"{path.parent.parent.name} still holds the id"


def test_small_files_are_joined_old_rows_deleted_and_nothing_else_changes(warehouse: Warehouse) -> None:
    old = [a_view(f"old-{n}") for n in range(4)]
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
    for one in (*old, *recent):
        warehouse.land([one])
    place = Path(warehouse.settings.warehouse_dir)
    assert len(list((place / "views").glob("day=*/*.parquet"))) >= 10

    # A file that is lost stops the table that it was of, and no other.
    for number in range(2):
        warehouse.land_raw([mux(number, "viewstart", number, view_id="late")], topic=LATE.name)
    next((place / "late").glob("day=*/*.parquet")).unlink()

    driver = warehouse.with_settings(views_days=100, rollups_days=90, minutes_days=30, recent_days=100)
    stop = threading.Event()
    round_ = Maintenance.of(driver.settings, tables.OF_VIEWS, lambda: NOW_MS, stop, driver.serving)
    assert round_.run(warehouse.spark) == ["late"]

    def count(table: str, where: str = "true") -> int:
        return int(warehouse.installation.table(table, f"SELECT count(*) FROM t WHERE {where}")[0][0])

    assert sorted(_generations(warehouse)) == sorted(one.view_id for one in recent)
    assert (count("rollups", "grain = 'minute'"), count("rollups", "grain = 'day' AND dimensions = ''")) == (0, 1)
    assert warehouse.installation.serving("SELECT sum(views)::int FROM serving.rollups_hourly") == [(6,)]
    assert warehouse.installation.serving("SELECT count(*)::int FROM serving.views") == [(6,)]
    files = warehouse.spark.sql(f"DESCRIBE DETAIL {tables.VIEWS.sql_name(str(place))}").collect()[0]["numFiles"]
    assert files == 1


def test_what_the_documents_show_can_be_run(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)
    views = [_somewhere(chance, f"view-{number}", revision=1) for number in range(40)]
    warehouse.land(views)
    monkeypatch.setenv("FINALIZER_WAREHOUSE_DIR", warehouse.settings.warehouse_dir)
    text = QUERIES.read_text()
    shown = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(shown) >= 4
    names: dict[str, object] = {}
    for snippet in shown:
        exec(compile(snippet, str(QUERIES), "exec"), names)  # one after the other, as a reader would
    assert names["views_counted"] == len(views)
    quantiles = names["startup_quantiles"]
    assert isinstance(quantiles, dict)
    exact = sorted(one.startup_ms for one in views if one.startup_ms is not None)
    assert quantiles[0.5] == pytest.approx(exact[(len(exact) - 1) // 2], rel=0.011)


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
    (live,) = _finished(beacons)
    assert live.spi_good
    warehouse.land([live])

    shown = (line for page in (QUERIES, REPROCESSING) for line in page.read_text().splitlines())
    exports = [line for line in shown if "python -m services.finalizer" in line]
    *exports, reprocess_line, swap_line = exports
    # The log's lines come before.
    assert [run(line).splitlines()[-1].split()[0] for line in exports] == ["1", "9"]
    assert "spi_good differs in 1" in run(reprocess_line)
    assert _good(warehouse) == [(1, True)]
    assert "1 views of generation 2" in run(swap_line)
    assert _good(warehouse) == [(2, False)]
    run("python -m services.finalizer swap-back --generation 2")
    assert _good(warehouse) == [(1, True)]


def _good(warehouse: Warehouse) -> list[tuple[object, ...]]:
    return warehouse.installation.table("views", "SELECT generation, spi_good FROM t")


def test_a_table_of_the_last_release_gains_what_this_one_has(spark: SparkSession, tmp_path: Path) -> None:
    previous = json.loads((Path(__file__).parents[1] / "fixtures" / "warehouse-schema.json").read_text())
    for name, told in previous.items():
        columns = ", ".join(f"`{column}` {kind}" for column, kind in told["columns"].items())
        parts = f" PARTITIONED BY ({', '.join(told['partition_by'])})" if told["partition_by"] else ""
        spark.sql(f"CREATE TABLE delta.`{tmp_path}/{name}` ({columns}) USING delta{parts}")
    spark.sql(
        f"INSERT INTO delta.`{tmp_path}/bronze` (topic, kafka_partition, kafka_offset, day) VALUES ('b', 3, 16, 1)"
    )

    tables.ensure(spark, str(tmp_path), auto_compact=False)

    for table in tables.OF_VIEWS:
        assert set(spark.read.format("delta").load(table.path(str(tmp_path))).columns) == set(table.columns())
    # What it held goes on to count.
    assert raw.held(spark, str(tmp_path), tables.BRONZE, "topic") == {3: 17}


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_day_is_exported_to_files_that_other_tools_read(
    warehouse: Warehouse, tmp_path: Path, file_format: str
) -> None:
    awkward = 'a "quoted", line\nbroken title'
    views = [a_view("one", video_title=awkward, custom={"plan": "gold"}), a_view("gone", deleted=True)]
    other_day = a_view("other", day=MORNING_MS // DAY_MS + 1)
    warehouse.land([*views, other_day])
    folder = tmp_path / "export"

    table = tables.VIEWS.path(warehouse.settings.warehouse_dir)
    rows = export(warehouse.spark, table, MORNING_MS // DAY_MS, to=str(folder), file_format=file_format)

    reader = "read_csv" if file_format == "csv" else "read_parquet"
    with duckdb.connect() as connection:
        query = f"SELECT view_id, video_title, custom::text FROM {reader}('{folder}/*.{file_format}')"
        found = connection.execute(query).fetchall()
    assert rows == len(found) == 1
    assert found[0][:2] == ("one", awkward)
    assert "gold" in found[0][2]
    # Bytes that fill more than a line of base64.
    long = mux(1, "viewstart", 0, view_id="long", video_title="x" * 500)
    warehouse.land_raw([long])
    bronze = tables.BRONZE.path(warehouse.settings.warehouse_dir)
    records = tmp_path / "records"
    assert export(warehouse.spark, bronze, T0 // DAY_MS, to=str(records), file_format=file_format) == 1
    with duckdb.connect() as connection:
        bytes_of = "from_base64(value)" if file_format == "csv" else "value"
        found = connection.execute(f"SELECT {bytes_of} FROM {reader}('{records}/*.{file_format}')").fetchall()
    assert found == [(codec.BEACON.encode(long),)]
    with pytest.raises(FileExistsError, match="exists"):
        export(warehouse.spark, table, 1, to=str(folder), file_format=file_format)


def test_the_serving_database_of_a_stopped_finalizer_refuses_it(warehouse: Warehouse) -> None:
    with psycopg.connect(warehouse.settings.postgres_dsn.get_secret_value()) as connection:
        connection.execute("UPDATE finalizer.fence SET epoch = epoch + 1")
    with pytest.raises(Fenced, match="is held by"):
        warehouse.land([a_view("one")])
