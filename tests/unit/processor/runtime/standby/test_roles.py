"""Who works a slot, decided from what is heard."""

from services.processor.runtime.standby.roles import (
    Heard,
    HomeReadiness,
    RoleTimeouts,
    last_at_work,
    may_go_active,
    successor,
)
from shared.schemas.presence import Presence, Role

PATIENCE = RoleTimeouts(suspect=1.5, rank=1.0, listen=0.7, lag_records_max=100, settle=10, overdue=60)


def heard(
    replica: int,
    role: Role,
    at: float,
    *,
    lag: int | None = 0,
    url: str | None = None,
    successor: int | None = None,
    partitions: tuple[int, ...] = (1, 2),
) -> dict[int, Heard]:
    beat = Presence(
        schema_version=1,
        application="video_views",
        slot="0/0",
        replica=replica,
        incarnation="x",
        role=role,
        partitions=list(partitions),
        lags={} if lag is None else {partitions[0]: lag, **dict.fromkeys(partitions[1:], 0)},
        url=url,
        successor=successor,
    )
    return {replica: Heard(beat, at)}


def goes(replica: int, others: dict[int, Heard], now: float, since: float = 0.0) -> bool:
    return may_go_active(replica, others, now=now, listening_since=since, timeouts=PATIENCE)


def test_home_listens_a_moment_and_takes_a_slot_that_nobody_works() -> None:
    assert not goes(0, {}, now=0.6)
    assert goes(0, {}, now=0.7)
    assert goes(0, heard(1, "standby", 0.6), now=0.7)


def test_home_leaves_the_slot_to_a_replica_that_works_it() -> None:
    assert not goes(0, heard(1, "active", 10.0), now=11.4)
    assert goes(0, heard(1, "active", 10.0), now=11.5)


def test_a_standby_waits_until_the_active_one_has_been_silent_for_long() -> None:
    assert not goes(1, heard(0, "active", 10.0), now=11.4)
    assert goes(1, heard(0, "active", 10.0), now=11.5)


def test_the_second_standby_lets_the_first_go_before_it() -> None:
    assert not goes(2, heard(0, "active", 10.0), now=12.4)
    assert goes(2, heard(0, "active", 10.0), now=12.5)


def test_silence_before_everything_could_be_heard_means_nothing() -> None:
    assert not goes(1, heard(0, "active", 10.0), now=20.0, since=19.0)
    assert goes(1, heard(0, "active", 10.0), now=20.5, since=19.0)


def test_the_successor_goes_on_at_once_and_nobody_else() -> None:
    heartbeat = heard(0, "handing_over", 10.0, successor=2)
    assert goes(2, heartbeat, now=10.01)
    assert not goes(1, heartbeat, now=10.01)


def test_another_standby_steps_in_when_the_successor_does_not() -> None:
    assert goes(1, heard(0, "handing_over", 10.0, successor=2), now=11.5)


def test_the_successor_is_the_first_standby_that_lives_with_a_fresh_copy_of_everything() -> None:
    partitions = frozenset({1, 2})

    def chosen(others: dict[int, Heard]) -> int | None:
        return successor(others, partitions, now=10.0, timeouts=PATIENCE)

    assert chosen(heard(1, "standby", 9.9) | heard(2, "standby", 9.9)) == 1
    assert chosen(heard(1, "standby", 8.0) | heard(2, "standby", 9.9)) == 2
    assert chosen(heard(1, "standby", 9.9, lag=None)) is None
    assert chosen(heard(1, "standby", 9.9, lag=101)) is None
    assert chosen(heard(1, "standby", 9.9, partitions=(1,))) is None
    assert chosen(heard(1, "active", 9.9)) is None


def ready(home: HomeReadiness, others: dict[int, Heard], lags: dict[int, int], now: float) -> bool:
    return home.check(others, lags, now).ok


def test_home_is_not_ready_while_another_replica_works_its_slot_however_close_its_copies_are() -> None:
    home = HomeReadiness(0, PATIENCE)
    assert not ready(home, {}, {}, now=0)
    for lags in ({}, {1: 0}, {1: 101, 2: 0}, {1: 100, 2: 0}):
        assert not ready(home, heard(1, "active", 100.0), lags, now=100)


def test_copies_that_are_not_warm_keep_home_from_being_ready_for_as_long_as_it_takes() -> None:
    home = HomeReadiness(0, PATIENCE)
    assert not any(ready(home, heard(1, "active", now), {1: 101, 2: 0}, now=now) for now in (1.0, 1e3, 1e6))


def test_home_is_ready_without_its_slot_when_it_is_not_handed_back_for_long_though_its_copies_are_warm() -> None:
    home, warm = HomeReadiness(0, PATIENCE), {1: 0, 2: 0}
    assert not ready(home, heard(1, "active", 100.0), warm, now=100)
    assert not ready(home, heard(1, "active", 169.0), warm, now=169)
    assert ready(home, heard(1, "active", 170.0), warm, now=170)
    # It has fallen behind again, so it cannot be handed over to.
    assert not ready(home, heard(1, "active", 171.0), {1: 101, 2: 0}, now=171)
    assert not ready(home, heard(1, "active", 172.0), warm, now=172)


def test_a_standby_on_another_host_is_ready_beside_whoever_works_the_slot() -> None:
    assert ready(HomeReadiness(1, PATIENCE), heard(0, "active", 100.0), {}, now=100)


def test_the_slot_has_the_partitions_that_who_worked_it_last_says() -> None:
    dead, drained = heard(0, "active", 5.0, partitions=(0, 1)), heard(3, "handing_over", 6.0, partitions=(0, 1))
    standing_by = heard(4, "standby", 11.0)
    assert last_at_work(standing_by) is None
    for others in (dead | drained | heard(1, "active", 10.0), heard(1, "active", 10.0) | drained | dead):
        at_work = last_at_work(others | standing_by)
        assert at_work is not None
        assert (at_work.replica, at_work.partitions) == (1, [1, 2])
