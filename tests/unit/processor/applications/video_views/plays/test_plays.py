"""Plays within one CMCD session: each becomes its own row, the same for any order and duplication of the session's beacons."""

import random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.video_views.app import application
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    RULES,
    SKEW_MS,
    T0,
    Drive,
    cmcd,
    driver_of,
    folded_fast,
    live,
    pipe,
    rows,
    stepped,
)
from tests.unit.processor.applications.video_views.counted import newest
from tests.unit.processor.applications.video_views.test_any_order import ARRIVAL_FIELDS, pauses

#: What a play's row says of its place in the session.
PLACE_FIELDS = {"view_id", "view_epoch", "end_reason", "view_dropped"}


def fields(row: View, without: set[str]) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(row).items() if name not in without}


def rows_of(beacons: list[Beacon], silent: list[tuple[float, int]] | None = None) -> dict[str, dict[str, Any]]:
    """The newest row of each view, by its id. While it is `silent`, plays may finish before the next beacon comes."""
    found = newest(folded_fast(beacons, silent or ()))
    return {view_id: fields(row, ARRIVAL_FIELDS) for view_id, row in found.items()}


def random_play(random_: random.Random, at_ms: int, content: str, *, first_seq: int = 0) -> list[Beacon]:
    """One play; some of its records are of requests, whose time is earlier than that of the record before."""
    beacons = []
    for number in range(random_.randint(1, 7)):
        at_ms += random_.randint(1, 2_000)
        seq = first_seq + number
        if number and random_.random() < 0.3:
            took_ms = random_.randint(0, 900) if at_ms > 900 else 0
            beacons.append(cmcd(seq, "request", at_ms - took_ms, sta="p", ttlb=took_ms, ttfb=took_ms // 2, cid=content))
            continue
        sta = "s" if number == 0 else random_.choice("pkraef")
        beacons.append(
            cmcd(seq, "custom", at_ms, sta=sta, cid=content, br=[[at_ms + 1, "v"]], cdn=random_.choice("xy"))
        )
    return beacons


def reported_ms(beacon: Beacon) -> int:
    return beacon.client_time_ms + int(beacon.attrs.get("ttlb", 0)) - T0


def random_session(seed: int) -> list[list[Beacon]]:
    """Up to four plays; each begins by a restart of the sequence, or by another content in the running one."""
    random_ = random.Random(seed)
    plays: list[list[Beacon]] = []
    at_ms, content, first_seq = 1_000, "a", 0
    for number in range(random_.randint(1, 4)):
        if number and random_.random() < 0.5:
            first_seq = (plays[-1][-1].seq or 0) + 1
            content = random_.choice([other for other in "abc" if other != content])
        else:
            first_seq = 0
            content = random_.choice("abc")
        plays.append(random_play(random_, at_ms, content, first_seq=first_seq))
        at_ms = max(reported_ms(beacon) for beacon in plays[-1])
    return plays


@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_any_order_and_duplication_gives_the_same_rows(seed: int, data: st.DataObject) -> None:
    plays = random_session(seed)
    beacons = [beacon for play in plays for beacon in play]
    shuffled = data.draw(st.permutations(beacons))
    repeated = data.draw(st.lists(st.sampled_from(beacons), max_size=5))
    expected = rows_of(beacons)
    assert sorted(expected) == ["s1", "s1.2", "s1.3", "s1.4"][: len(plays)]
    assert rows_of([*shuffled, *repeated], data.draw(pauses())) == expected


@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_any_order_and_duplication_gives_the_same_rows_though_beacons_are_lost(seed: int, data: st.DataObject) -> None:
    random_ = random.Random(seed)
    plays = random_session(seed)
    # The first of a run shows that numbers began again: it is lost more often than others.
    beacons = [one for play in plays for one in play if random_.random() >= (0.15 if one.seq else 0.5)] or plays[0]
    shuffled = data.draw(st.permutations(beacons))
    repeated = data.draw(st.lists(st.sampled_from(beacons), max_size=5))
    expected = rows_of(beacons)
    assert rows_of([*shuffled, *repeated], data.draw(pauses())) == expected
    assert sum(row["beacon_count"] for row in expected.values()) <= len(beacons)


@given(seed=st.integers(0, 1 << 32))
def test_each_play_is_the_view_that_its_beacons_alone_would_be(seed: int) -> None:
    plays = [play for play in random_session(seed) if play[0].seq == 0]
    found = rows_of([beacon for play in plays for beacon in play])
    for number, play in enumerate(plays, start=1):
        (alone,) = rows_of(play).values()
        together = found["s1" if number == 1 else f"s1.{number}"]
        # What follows in the run is unknown to the one alone.
        assert {n: v for n, v in together.items() if n not in PLACE_FIELDS} == {
            n: v for n, v in alone.items() if n not in PLACE_FIELDS
        }


def two_plays() -> list[Beacon]:
    return [
        cmcd(0, "viewstart", 0, sta="s", cid="a"),
        cmcd(1, "playing", 500, sta="p", cid="a"),
        cmcd(2, "heartbeat", 30_500, sta="p", cid="a"),
        cmcd(0, "viewstart", 40_000, sta="s", cid="a"),
        cmcd(1, "playing", 41_000, sta="p", cid="a"),
        cmcd(2, "ended", 61_000, sta="e", cid="a"),
    ]


def test_each_play_of_a_session_becomes_a_row(drive: Drive) -> None:
    driver = driver_of(drive)
    for beacon in two_plays():
        pipe(driver, beacon)
    driver.advance_to(T0 + HOUR_MS)
    first, second = {row.view_id: row for row in rows(driver)}.values()
    assert (first.view_id, first.view_epoch, first.end_reason, first.view_dropped) == ("s1", 1, "superseded", False)
    assert (first.startup_ms, first.playing_ms, first.beacon_count) == (500, 30_000, 3)
    assert (second.view_id, second.view_epoch, second.end_reason) == ("s1.2", 2, "clean")
    assert (second.startup_ms, second.playing_ms, second.beacon_count) == (1_000, 20_000, 3)
    buckets = live(driver)
    assert sum(bucket.views_started for bucket in buckets) == 2
    assert sum(bucket.views_finished for bucket in buckets) == 2
    assert sum(bucket.beacons for bucket in buckets) == 6
    assert max(bucket.viewers_now for bucket in buckets) == 1
    assert (buckets[-1].open_now, buckets[-1].viewers_now) == (0, 0)


def test_a_beacon_reported_before_the_first_beginning_is_of_the_run_after_it_though_that_one_is_followed_by_another() -> (
    None
):
    found = rows_of([
        cmcd(0, "viewstart", 0, sta="s", cid="a"),
        cmcd(1, "playing", 500, sta="p", cid="a"),
        # The beacon numbered 0 of the second play was lost.
        cmcd(1, "playing", 70_000, sta="p", cid="a"),
        cmcd(2, "ended", 90_000, sta="e", cid="a"),
        # The clock was set back.
        stepped(cmcd(3, "heartbeat", 30_000, sta="p", cid="a"), -630_000),
    ])  # fmt: skip
    assert {view_id: row["beacon_count"] for view_id, row in found.items()} == {"s1": 3, "s1.2": 2}


def test_what_came_before_the_first_known_beginning_is_a_play_of_its_own() -> None:
    found = rows_of([
        # The beacon numbered 0 of the first play was lost; the numbers of the two plays have none in common.
        cmcd(3, "heartbeat", 30_000, sta="p", cid="a"),
        cmcd(4, "ended", 50_000, sta="e", cid="a"),
        cmcd(0, "viewstart", 70_000, sta="s", cid="a"),
        cmcd(1, "playing", 71_000, sta="p", cid="a"),
    ])  # fmt: skip
    assert {view_id: row["watch_ms"] for view_id, row in found.items()} == {"s1": 20_000, "s1.2": 1_000}


def test_a_play_revises_alone(drive: Drive) -> None:
    driver = driver_of(drive)
    *most, last = two_plays()
    for beacon in most:
        pipe(driver, beacon)
    driver.advance_to(T0 + 10 * MINUTE_MS)
    pipe(driver, last, 20 * MINUTE_MS)
    driver.advance_to(T0 + 30 * MINUTE_MS)
    assert [(row.view_id, row.revision, row.end_reason) for row in rows(driver)] == [
        ("s1", 1, "superseded"),
        ("s1.2", 1, "timeout"),
        ("s1.2", 2, "clean"),
    ]


def test_an_earlier_play_that_comes_later_moves_the_numbers_and_revises_the_rows(drive: Drive) -> None:
    driver = driver_of(drive)
    beacons = two_plays()
    for number, beacon in enumerate(beacons[3:]):
        pipe(driver, beacon, 61_000 + SKEW_MS + number)
    driver.advance_to(T0 + 7 * MINUTE_MS)
    assert [(row.view_id, row.revision, row.startup_ms) for row in rows(driver)] == [("s1", 1, 1_000)]
    for number, beacon in enumerate(beacons[:3]):
        pipe(driver, beacon, 8 * MINUTE_MS + number)
    driver.advance_to(T0 + HOUR_MS)
    newest = {row.view_id: row for row in rows(driver)}
    assert {name: (row.startup_ms, row.end_reason) for name, row in newest.items()} == {
        "s1": (500, "superseded"),
        "s1.2": (1_000, "clean"),
    }
    assert newest["s1"].revision > 1
    assert len({row.day for row in rows(driver)}) == 1
    assert live(driver)[-1].open_now == 0


def test_a_play_that_turns_out_to_be_none_is_taken_back_from_the_slices_it_began_in(drive: Drive) -> None:
    driver = drive(application(RULES, live_dimensions=("cdn",)))
    # Its beginning comes last: until then the second play stands in the place of the first.
    story = [
        cmcd(1, "playing", 41_000, sta="p", cid="b", cdn="y"),
        cmcd(2, "ended", 61_000, sta="e", cid="b"),
        cmcd(0, "viewstart", 0, sta="s", cid="a", cdn="x"),
        cmcd(1, "playing", 500, sta="p", cid="a"),
        cmcd(0, "viewstart", 40_000, sta="s", cid="b", cdn="y"),
    ]
    for number, beacon in enumerate(story):
        pipe(driver, beacon, 61_000 + SKEW_MS + number)
    driver.advance_to(T0 + HOUR_MS)
    buckets = live(driver)
    assert len({row.view_id for row in rows(driver)}) == 2
    started = {
        name: sum(bucket.slices[name].views_started for bucket in buckets if name in bucket.slices)
        for name in ("cdn=x", "cdn=y")
    }
    assert started == {"cdn=x": 1, "cdn=y": 1}
    assert sum(bucket.views_started for bucket in buckets) == 2
