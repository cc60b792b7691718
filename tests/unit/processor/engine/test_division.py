"""More partitions: each row is where its key is, once, and views go on as if nothing had moved."""

import random
from typing import Any

import pytest

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.live.rows import COHORTS, LIVE_ROWS
from services.processor.applications.video_views.stores import VIEWS
from services.processor.engine.application.application import Application
from services.processor.engine.core.core import Core
from services.processor.engine.core.quarantine import record_key_of
from services.processor.engine.division import CannotGrow, Divided, Division, sources_of, targets_of
from services.processor.engine.record import Record
from services.processor.engine.state.local import LocalMeta, MemoryStore
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import unpack
from shared import codec, topics
from shared.partitioning import partition_of, view_key
from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import HOUR_MS, RULES, T0, cmcd, mux
from tests.unit.processor.engine.counting import APPLICATION as COUNTING

FORMER = 8
PARTITION = 3
VIEWED = application(RULES, live_dimensions=("cdn", "country"))
GAUGES = ("viewers_now", "rebuffering_now", "bitrate_bps_now", "bitrate_viewers_now")


def stories(seed: int) -> list[Beacon]:
    """Beacons of views and sessions of partition `PARTITION`, in the order of their times."""
    chosen = random.Random(seed)
    names = (f"v{number}" for number in range(10_000))
    own = [name for name in names if partition_of(view_key("acme", name), FORMER) == PARTITION][:40]
    beacons = []
    for name in own[:30]:
        begins = chosen.randrange(0, 60_000)
        events = ["viewstart", "playing", *chosen.choices(["heartbeat", "pause", "playing", "rebufferstart"], k=5)]
        beacons += [
            mux(seq, event, begins + 500 * seq, view_id=name, video_cdn=chosen.choice(["one", "two"]))
            for seq, event in enumerate([*events, *["viewend"] * chosen.randrange(2)], 1)
        ]
    for name in own[30:]:
        begins = chosen.randrange(0, 60_000)
        for play in range(2):
            beacons += [
                cmcd(seq, event, begins + 20_000 * play + 500 * seq, view_id=name, video_id=f"film-{play}")
                for seq, event in enumerate(["playing", "heartbeat", "heartbeat"], 1)
            ]
    return sorted(beacons, key=lambda one: one.client_time_ms or 0)


class Run:
    """A core whose commits are kept."""

    def __init__(
        self, of: Application, partition: int, rows: dict[bytes, bytes], meta: Meta | None, **more: Any
    ) -> None:
        local = MemoryStore()
        if meta is not None:
            local.write(rows, LocalMeta(meta, 1))
        self.core = Core(of, partition, local, **more)
        self.rows = dict(rows)
        self.outputs: list[Any] = []
        self._offset = self.core.next_offset(topics.BEACONS.name) or 0

    def fold(self, beacons: list[Beacon]) -> None:
        for one in beacons:
            key = view_key(one.customer_id, one.view_id)
            at_ms = T0 + 2_000 + (one.client_time_ms or 0) - T0
            self.take(
                Record(
                    topics.BEACONS.name,
                    self.core._context.partition,
                    self._offset,
                    at_ms,
                    key,
                    codec.BEACON.encode(one),
                )
            )

    def take(self, record: Record) -> None:
        while not self.core.fold([record]):
            self.commit()
        self._offset += 1
        self.commit()

    def advance_to(self, clock_ms: int) -> None:
        while not self.core.advance_to(clock_ms):
            self.commit()
        self.commit()

    def commit(self) -> None:
        checkpoint = self.core.cut()
        self.core.commit()
        self.outputs += checkpoint.outputs
        for key, row in checkpoint.changes.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row

    @property
    def finished(self) -> list[tuple[bytes, bytes]]:
        return sorted((one.key, one.value) for one in self.outputs if one.topic == topics.VIEWS.name)


def begun(seed: int, share: float = 0.6) -> tuple[Run, list[Beacon]]:
    """A partition in the midst of its views, and the beacons to come."""
    beacons = stories(seed)
    run = Run(VIEWED, PARTITION, {}, None, partitions=FORMER)
    at = int(len(beacons) * share)
    run.fold(beacons[:at])
    return run, beacons[at:]


def divided(run: Run, partitions: int) -> tuple[Divided, dict[int, Run]]:
    division = Division(VIEWED, partition=PARTITION, former=FORMER, partitions=partitions)
    for key, row in run.rows.items():
        division.take_row(key, row)
    found = division.divided(run.core.committed)
    runs = {}
    for number, changes in found.rows.items():
        rows = dict(run.rows) if number == PARTITION else {}
        for key, row in changes.items():
            if row is None:
                del rows[key]
            else:
                rows[key] = row
        runs[number] = Run(VIEWED, number, rows, found.metas[number], partitions=partitions, hands_on=True)
    return found, runs


def home_of(row_key: bytes, partitions: int) -> int:
    return partition_of(row_key[1:].partition(b"\x00")[0], partitions)


@pytest.mark.parametrize("partitions", [16, 24, 32])
@pytest.mark.parametrize("seed", range(3))
def test_every_row_is_at_its_keys_partition_once_and_as_it_was(partitions: int, seed: int) -> None:
    run, _ = begun(seed)
    sums = {LIVE_ROWS.id, COHORTS.id}
    before = {key: row for key, row in run.rows.items() if key[0] not in sums}
    _, runs = divided(run, partitions)
    after: dict[bytes, bytes] = {}
    for number, part in runs.items():
        for key, row in part.rows.items():
            if key[0] in sums:
                continue
            assert home_of(key, partitions) == number
            assert key not in after
            after[key] = row
    assert after == before
    assert all(any(key[0] == VIEWS.id for key in part.rows) for part in runs.values()), "each part has views"


@pytest.mark.parametrize("seed", range(3))
def test_what_is_counted_of_views_moves_with_them(seed: int) -> None:
    run, _ = begun(seed)
    found, runs = divided(run, 16)
    for number, part in runs.items():
        views = [VIEWS.decode(unpack(row)[2]) for key, row in part.rows.items() if key[0] == VIEWS.id]
        lives = [LIVE_ROWS.decode(unpack(row)[2]) for key, row in part.rows.items() if key[0] == LIVE_ROWS.id]
        cohort_rows = [COHORTS.decode(unpack(row)[2]) for key, row in part.rows.items() if key[0] == COHORTS.id]
        is_open = sum(view.shown.is_open for view in views)
        viewers = sum(view.shown.viewer > 0 for view in views)
        bitrate = sum(view.shown.bitrate_bps for view in views)
        assert is_open
        assert sum(live.open_now for live in lives) == found.metas[number].tallies["open_views"] == is_open
        assert sum(live.viewers_now for live in lives) == sum(one.viewers_now for one in cohort_rows) == viewers
        assert sum(live.bitrate_bps_now for live in lives) == bitrate
        assert sum(live.cohorts for live in lives) == len(cohort_rows)
        counted = {spec.id: sum(key[0] == spec.id for key in part.rows) for spec in VIEWED.stores}
        assert {store_id: found.metas[number].rows.get(store_id, 0) for store_id in counted} == counted
    # What was counted in the open bucket is emitted once.
    assert all(
        not live.beacons
        for number, part in runs.items()
        if number != PARTITION
        for live in (LIVE_ROWS.decode(unpack(row)[2]) for key, row in part.rows.items() if key[0] == LIVE_ROWS.id)
    )


@pytest.mark.parametrize("partitions", [16, 32])
def test_views_go_on_as_if_they_had_not_moved(partitions: int) -> None:
    run, rest = begun(7)
    assert not run.finished
    _, runs = divided(run, partitions)
    run.fold(rest)
    run.advance_to(T0 + 3 * HOUR_MS)
    for one in rest:
        runs[partition_of(view_key(one.customer_id, one.view_id), partitions)].fold([one])
    for part in runs.values():
        part.advance_to(T0 + 3 * HOUR_MS)
    assert len(run.finished) >= 30
    assert sorted(pair for part in runs.values() for pair in part.finished) == run.finished
    for part in runs.values():
        lives = [codec.LIVE.decode(one.value) for one in part.outputs if one.topic == topics.LIVE.name]
        assert (lives[-1].open_now, lives[-1].viewers_now) == (0, 0)
        assert part.core.tallies == {"open_views": 0}


def test_a_record_of_another_partition_is_handed_on_in_the_checkpoint_that_takes_it() -> None:
    core = Run(VIEWED, PARTITION, {}, None, partitions=16, hands_on=True)
    beacons = {partition_of(view_key("acme", one.view_id), 16): one for one in stories(1)}
    assert beacons.keys() == {PARTITION, PARTITION + FORMER}
    for one in beacons.values():
        core.fold([one])
    (handed,) = [one for one in core.outputs if one.topic == topics.BEACONS.name]
    moved = beacons[PARTITION + FORMER]
    assert (handed.key, handed.value, handed.by_key) == (
        view_key("acme", moved.view_id),
        codec.BEACON.encode(moved),
        True,
    )
    assert [key[1:] for key in core.rows if key[0] == VIEWS.id] == [view_key("acme", beacons[PARTITION].view_id)]
    assert core.core.next_offset(topics.BEACONS.name) == 2


def test_the_clock_and_formats_of_a_new_partition_are_those_of_its_former_one() -> None:
    run, _ = begun(2)
    before = run.core.committed
    found, _ = divided(run, 16)
    stays, new = found.metas[PARTITION], found.metas[PARTITION + FORMER]
    assert stays.clock_ms == new.clock_ms == before.clock_ms
    assert stays.partitions == new.partitions == 16
    assert (stays.next_offsets, new.next_offsets) == (before.next_offsets, {})
    assert (stays.commit_number, new.commit_number) == (before.commit_number + 1, 1)
    assert new.store_formats == before.store_formats


def test_rows_of_quarantined_keys_belong_to_their_record_keys() -> None:
    assert record_key_of(b"\xfekacme:v1") == b"acme:v1"
    assert record_key_of(b"\xfer\x00\x07acme:v1\x01acme:v1") == b"acme:v1"


def test_partitions_are_multiplied_or_nothing_is_done() -> None:
    assert list(targets_of(3, 8, 32)) == [11, 19, 27]
    for partitions in (8, 12, 4):
        with pytest.raises(CannotGrow, match="a multiple of 8 alone"):
            targets_of(3, 8, partitions)
    with pytest.raises(CannotGrow, match="cannot be divided"):
        Division(COUNTING, partition=0, former=8, partitions=16)


def test_a_new_partition_may_have_been_divided_from_any_former_number() -> None:
    assert sources_of(11, 16, 8) == [3]
    assert sources_of(28, 32, 8) == [4, 12]
    # Of 24, not 16: never divided from 16.
    assert sources_of(20, 24, 8) == [4]
    assert sources_of(3, 16, 8) == []
