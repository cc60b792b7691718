"""The warehouse restated: late revisions in any order, and views folded again from their beacons, swapped in and taken back."""

import random
import threading
from contextlib import nullcontext
from itertools import product
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from deploy.local.postgres import Postgres
from services.finalizer import commands
from services.finalizer.__main__ import parser
from services.finalizer.jobs import reprocess, swap
from services.finalizer.jobs.compare import compare
from services.finalizer.jobs.reprocess import BeaconsGone, GenerationSwapped, Made, NothingReprocessed
from services.finalizer.jobs.swap import SwapOutOfOrder
from services.finalizer.streaming import rollups, starting
from services.finalizer.streaming.rebuilding import MINUTES_VIEWS_MIN
from services.finalizer.streaming.recount import Recount, recount
from services.finalizer.warehouse import tables
from tests.integration.finalizer.expecting import expect_truth
from tests.integration.finalizer.finalizing import HOUR_MS, MORNING_MS, a_view, newest
from tests.integration.finalizer.warehouse.warehousing import (
    DAY_MS,
    Died,
    Warehouse,
    beacons_of,
    finalizer_settings,
    finished,
    generations,
    somewhere,
)
from tests.unit.processor.applications.video_views.beacons import T0, cmcd

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


def test_old_days_restated_in_any_order_leave_what_a_full_recount_gives(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = _recounts(monkeypatch)
    chance = random.Random(5)
    kept_before = _frames_kept(warehouse)
    first = [somewhere(chance, f"view-{number}", revision=1) for number in range(60)]
    warehouse.land(first)
    landed = list(first)
    # Large hours are the sum of their minutes: what is stored of them is read, and only what has changed is counted. Others are
    # counted whole, also after they were large.
    for views_min, dies_at in product((0, MINUTES_VIEWS_MIN), ("merged", "rebuilt", "published")):
        monkeypatch.setattr(warehouse.driver.rebuilding, "_minutes_views_min", views_min)
        before = len(planned)
        # Revisions that move to other hours and days, take views back, or bring old news; each death leaves dirty slices.
        restated = [
            somewhere(chance, one.view_id, revision=chance.randint(1, 5), deleted=chance.random() < 0.2)
            for one in chance.sample(landed, 15)
        ]
        landed += restated
        warehouse.land(restated, dies_at=dies_at)
        # Of what was published before, and not of what is new.
        assert any(again.parts for again in planned[before:]) == (not views_min)
        assert len(planned) > before
        if dies_at == "published":
            expect_truth(warehouse.installation, newest(landed))
    assert not planned[0].parts
    # What batches keep while they run is given back, also after a death.
    assert _frames_kept(warehouse) <= kept_before


def test_an_hour_whose_minutes_were_deleted_while_fewer_were_kept_is_counted_whole(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warehouse.driver.rebuilding, "_minutes_views_min", 0)
    views = [a_view(f"view-{number}", view_end_ms=MORNING_MS + number * 60_000) for number in range(5)]
    warehouse.land(views)
    name = tables.ROLLUPS.sql_name(warehouse.settings.warehouse_dir)
    warehouse.spark.sql(f"DELETE FROM {name} WHERE grain = 'minute'")
    restated = msgspec.structs.replace(views[0], revision=2, watch_ms=7)

    warehouse.land([restated])

    expect_truth(warehouse.installation, newest([*views, restated]))


def _recounts(monkeypatch: pytest.MonkeyPatch) -> list[Recount]:
    """What is counted again from now on."""
    planned: list[Recount] = []

    def noted(*given: Any) -> Recount:
        planned.append(recount(*given))
        return planned[-1]

    monkeypatch.setattr(rollups, "recount", noted)
    return planned


def _frames_kept(warehouse: Warehouse) -> int:
    """How many frames Spark keeps; those that Delta keeps have a name."""
    found = warehouse.spark.sparkContext._jsc.getPersistentRDDs().values()
    return sum(one.name() is None for one in found)


def test_a_generation_is_made_from_bronze_compared_swapped_in_and_taken_back(warehouse: Warehouse) -> None:
    spark, place = warehouse.spark, warehouse.settings.warehouse_dir
    live = []
    for partition, names in ((0, "abc"), (5, "xyz")):
        beacons = beacons_of(names)
        warehouse.land_raw(beacons, partition=partition)
        live += finished(beacons)
    warehouse.land(live)
    day = live[0].day

    # The same formula gives the same rows, field by field.
    assert reprocess.make(spark, place, (day, day), 2, {}) == Made(len(live), 0) == (6, 0)
    same = compare(spark, place, 2)
    assert (same.same, same.changed, same.added, same.not_reprocessed, same.partial) == (6, 0, 0, 0, 0)
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
    assert generations(warehouse) == {"a": 2, "b": 2, "c": 2, "unknown": 1, "x": 2, "y": 2, "z": 2}

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
    assert generations(warehouse) == {"a": 1, "b": 2, "c": 2, "unknown": 1, "x": 1, "y": 1, "z": 1}
    expect_truth(warehouse.installation, newest([*live, quicker, former, new, unknown]))
    with pytest.raises(NothingReprocessed, match="generation 4"):
        compare(spark, place, 4)


def test_views_of_which_bronze_has_only_a_part_keep_the_rows_they_have(warehouse: Warehouse) -> None:
    spark, place = warehouse.spark, warehouse.settings.warehouse_dir
    # One from the evening before into the night, reported minute by minute; one that gets a revision that bronze has not yet.
    evening = -15 * HOUR_MS
    cut = [
        cmcd(n, "playing" if n == 0 else "heartbeat", evening + n * 120_000, view_id="cut", sta="p") for n in range(60)
    ]
    beacons = [*cut, *beacons_of("ab")]
    warehouse.land_raw(beacons)
    live = finished(beacons)
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
    difference = compare(spark, place, 3)
    assert (difference.same, difference.partial) == (1, 2)
    assert (difference.changed, difference.added, difference.not_reprocessed) == (0, 0, 0)
    assert any("2 kept as they are" in line for line in difference.lines())
    swap.swap(warehouse.driver, 3)
    again = msgspec.structs.replace(next(one for one in live if one.view_id == "a"), generation=3, revision=0)
    expect_truth(warehouse.installation, newest([*live, later, again]))

    # What a table holds of a topic that was recreated is distinguished from the former one's: their offsets overlap.
    assert starting.held(spark, place, tables.BRONZE, "topic") == {0: len(beacons)}
    assert starting.held(spark, place, tables.BRONZE, "recreated") == {}
    warehouse.land_raw(beacons_of("c")[:2], topic_id="recreated")
    assert starting.held(spark, place, tables.BRONZE, "recreated")[0] > len(beacons)
    assert starting.held(spark, place, tables.BRONZE, "topic") == {0: len(beacons)}


#: What readers of the serving database see, and which generations can be taken back.
SERVED = (
    "SELECT grain, start, customer_id, dimensions, members, views, watch_ms FROM serving.rollups ORDER BY 1, 2, 3, 4, 5",
    "SELECT hour, customer_id, views FROM serving.rollups_hourly ORDER BY 1, 2",
    "SELECT customer_id, view_id, generation, revision, deleted, document FROM serving.views ORDER BY 1, 2",
    "SELECT level, customer_id, sum(views)::bigint FROM serving.blocks GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT generation FROM finalizer.swapped",
)


def test_a_serving_database_that_was_lost_is_filled_again_from_the_warehouse(
    warehouse: Warehouse, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(11)
    beacons = beacons_of("ab")
    warehouse.land_raw(beacons)
    live = finished(beacons)
    others = [somewhere(chance, f"view-{number}", revision=1) for number in range(20)]
    # The swap counts the hours again.
    warehouse.land([*live, *others, somewhere(chance, "view-3", revision=2, deleted=True)], rebuilds=False)
    reprocess.make(warehouse.spark, warehouse.settings.warehouse_dir, (live[0].day, live[0].day), 2, {})
    swap.swap(warehouse.driver, 2)
    served = {query: warehouse.installation.serving(query) for query in SERVED}
    # The new one may write where the old one was fenced.
    warehouse.close()

    empty = postgres.create_database(f"warehouse_{uuid4().hex}")
    again = Warehouse(warehouse.spark, finalizer_settings(warehouse.folder, empty, slices_max="64"), warehouse.folder)
    try:
        monkeypatch.setattr(commands, "writing", lambda *_: nullcontext(again.driver))
        given = parser().parse_args(["publish"])
        given.run(commands.Job(again.settings, threading.Event(), given, {}))

        assert "slices published from the warehouse" in capsys.readouterr().out
        assert {query: again.installation.serving(query) for query in SERVED} == served
        assert all(served.values())
        assert again.installation.serving("SELECT * FROM finalizer.dirty_slices") == []
    finally:
        again.close()
