"""The pace of faults, without a fleet: as many as asked for, however long single faults take."""

import random

import pytest

from tests.chaos.production.run import FAULTS_PER_HOUR
from tests.chaos.schedule import Deck, Pace

HOUR_SECONDS = 3_600.0


def injected_in_an_hour(faults_per_hour: float, seconds_min: float, seconds_max: float) -> tuple[int, list[float]]:
    """How many faults that last so long come in an hour, and the gaps between them."""
    chance, pace = random.Random(1), Pace(faults_per_hour)
    deck = Deck(chance, ["a", "b"], HOUR_SECONDS)
    now, gaps = 0.0, list[float]()
    while now < HOUR_SECONDS:
        gaps.append(pace.gap_seconds(deck.gap_seconds(), len(gaps), now))
        now += gaps[-1] + chance.uniform(seconds_min, seconds_max)
    return len(gaps), gaps


def test_without_a_pace_faults_of_six_seconds_are_fewer_than_an_hour_must_have() -> None:
    assert injected_in_an_hour(0.0, 0.0, 12.0)[0] < 500


@pytest.mark.parametrize("seconds_max", [9.0, 12.0, 13.0])
def test_an_hour_has_the_faults_of_its_pace_however_long_single_ones_take(seconds_max: float) -> None:
    assert injected_in_an_hour(FAULTS_PER_HOUR, 0.0, seconds_max)[0] >= FAULTS_PER_HOUR - 10


def test_a_run_that_is_on_time_keeps_its_gaps() -> None:
    assert max(injected_in_an_hour(FAULTS_PER_HOUR, 0.0, 1.0)[1]) > 4.0


def test_one_fault_that_lasts_for_minutes_is_made_good() -> None:
    pace = Pace(FAULTS_PER_HOUR)
    assert pace.gap_seconds(3.0, injected=10, passed_seconds=300.0) == 0.0
    assert pace.gap_seconds(3.0, injected=60, passed_seconds=300.0) == 3.0


def test_a_fault_that_must_wait_gives_its_turn_to_the_next_and_comes_still() -> None:
    deck = Deck(random.Random(1), ["broker", "slot", "network"], 1.0)
    first = [deck.draw(lambda kind: kind != "broker") for _ in range(2)]
    assert set(first) == {"slot", "network"}
    assert deck.draw(lambda kind: kind != "broker") == "broker"


def test_without_faults_that_wait_every_deck_has_each_kind_once() -> None:
    deck = Deck(random.Random(1), ["a", "b", "c"], 1.0)
    for _ in range(3):
        assert {deck.draw(lambda _: True) for _ in range(3)} == {"a", "b", "c"}
