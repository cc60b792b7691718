"""Stories of baselines: windows, what is usual, anomalies that open, go on and close; each in three weathers."""

from collections.abc import Callable

import pytest

from services.processor.applications.api_baselines.app import application
from services.processor.engine.application.application import Application, LookupWrong
from services.processor.engine.driver import Driver
from shared import topics
from shared.statistics.histogram import quantile
from tests.unit.processor.applications.api_baselines.calls import (
    APPLICATION,
    GRACE_MS,
    KEY,
    RULES,
    T0,
    WINDOW_MS,
    Load,
    anomalies,
    brief,
    call,
    close,
    document,
    jittered,
    pipe,
    records,
    rows,
    window_of,
    windows,
)

Drive = Callable[[Application], Driver]

DAY_MS = 86_400_000
#: The first window is not whole, so it teaches nothing.
LEARNED = 1 + RULES.usual_windows_min


def after(drive: Drive, *loads: Load | None) -> Driver:
    """A driver that knows what is usual, after these windows."""
    driver = drive(APPLICATION)
    pipe(driver, windows(*jittered(LEARNED, seed=1), *loads))
    close(driver, LEARNED + len(loads))
    return driver


def test_a_window_is_written_when_its_grace_is_over(drive: Drive) -> None:
    driver = drive(APPLICATION)
    calls = [call(100, ms=40), call(200, ms=60, status=404), call(300, ms=80, status=503), call(400, ms=None)]
    # The last is not: an unknown path's 404 is no endpoint's.
    pipe(driver, [*calls, call(450, "/nothing", status=404)])
    driver.advance_to(T0 + WINDOW_MS + GRACE_MS - 1)
    assert rows(driver) == []
    close(driver, 1)
    (row,) = rows(driver)
    assert (row.customer_id, row.host, row.method, row.path) == ("acme", "api.example", "GET", "/users/{id}")
    assert (row.start_ms, row.window_ms, row.state) == (T0, WINDOW_MS, "learning")
    assert (row.calls, row.client_errors, row.server_errors, row.timed_calls, row.late_calls) == (4, 1, 1, 3, 0)
    sketch = dict(zip(row.latency_buckets, row.latency_counts, strict=True))
    assert (row.latency_us_p50, row.latency_us_p99) == (quantile(sketch, 0.5), quantile(sketch, 0.99))
    assert row.latency_us_p50 == pytest.approx(60_000, rel=0.01)
    assert document(driver)["calls_elsewhere"] == {"unmatched": 1, "dropped": 0}


def test_a_call_counts_in_the_window_in_which_it_ended_however_late_within_the_grace(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, [call(WINDOW_MS + 10, ms=50)])
    pipe(driver, [call(WINDOW_MS - 10, ms=50)], came_ms=WINDOW_MS + 20)
    close(driver, 1)
    pipe(driver, [call(WINDOW_MS - 20)], came_ms=WINDOW_MS + GRACE_MS + 100)
    pipe(driver, [call(2 * WINDOW_MS + 10)])
    close(driver, 3)
    assert [(row.start_ms - T0, row.calls, row.late_calls) for row in rows(driver)] == [
        (0, 1, 0),
        (WINDOW_MS, 1, 1),
        (2 * WINDOW_MS, 1, 0),
    ]
    assert driver.tallies["late_calls"] == 1


def test_usual_windows_make_a_baseline_and_no_anomaly(drive: Drive) -> None:
    driver = after(drive, *jittered(6, seed=2))
    assert anomalies(driver) == []
    assert [row.state for row in rows(driver)] == ["learning"] * LEARNED + ["usual"] * 6
    (endpoint,) = document(driver)["endpoints"]
    assert (endpoint["path"], endpoint["state"], endpoint["season"]) == ("/users/{id}", "usual", "hour_of_week")
    assert endpoint["usual"]["calls"] == pytest.approx(40, abs=4)
    assert endpoint["usual"]["p50"] == pytest.approx(103_000, rel=0.05)


def test_latency_that_rises_is_one_anomaly_from_its_first_window_to_its_last(drive: Drive) -> None:
    slow = Load(ms=400)
    driver = after(drive, slow, slow, *jittered(1, seed=3), slow, *jittered(2, seed=4))
    assert brief(driver) == [
        ("latency", 1, "open", None),
        ("latency", 2, "open", None),
        ("latency", 3, "open", None),
        ("latency", 4, "closed", "usual_again"),
    ]
    opened, *_, closed = anomalies(driver)
    assert {one.opened_ms for one in anomalies(driver)} == {T0 + LEARNED * WINDOW_MS}
    assert (closed.last_ms, closed.windows) == (T0 + (LEARNED + 4) * WINDOW_MS, 3)
    evidence = opened.latest
    assert (evidence.direction, evidence.calls, evidence.usual_windows) == ("above", 40, RULES.usual_windows_min)
    assert evidence.value == pytest.approx(403_000, rel=0.03)
    assert evidence.usual == pytest.approx(103_000, rel=0.05)
    assert evidence.score > 5
    assert evidence.probability < 1e-5
    assert closed.worst.probability <= evidence.probability
    assert driver.tallies["open_anomalies"] == 0


def test_an_anomaly_is_not_over_before_enough_windows_in_a_row_are_usual(drive: Drive) -> None:
    driver = after(drive, Load(ms=400), *jittered(1, seed=3), Load(ms=400), *jittered(1, seed=4))
    assert brief(driver) == [("latency", 1, "open", None), ("latency", 2, "open", None)]


def test_answers_that_come_at_once_are_not_as_usual_either(drive: Drive) -> None:
    (opened,) = anomalies(after(drive, Load(ms=5)))
    assert (opened.measure, opened.latest.direction) == ("latency", "below")


def test_errors_are_reported_by_their_class(drive: Drive) -> None:
    driver = after(drive, Load(errors=12), Load(errors=12, status=422))
    assert brief(driver) == [("server_errors", 1, "open", None), ("client_errors", 1, "open", None)]
    assert anomalies(driver)[0].latest.value == pytest.approx(0.3)
    assert anomalies(driver)[0].latest.usual == 0
    (endpoint,) = document(driver)["endpoints"]
    assert [one["measure"] for one in endpoint["anomalies"]] == ["server_errors", "client_errors"]
    assert driver.tallies["open_anomalies"] == 2


def test_a_few_errors_are_nothing(drive: Drive) -> None:
    assert anomalies(after(drive, Load(errors=2))) == []


@pytest.mark.parametrize(("load", "direction"), [(Load(calls=160), "above"), (Load(calls=5), "below")])
def test_traffic_is_reported_whether_it_rises_or_falls(drive: Drive, load: Load, direction: str) -> None:
    driver = after(drive, load)
    assert brief(driver) == [("traffic", 1, "open", None)]
    assert anomalies(driver)[0].latest.direction == direction


def test_calls_that_cease_are_reported_though_nothing_comes(drive: Drive) -> None:
    driver = after(drive, None, None)
    assert brief(driver) == [("traffic", 1, "open", None), ("traffic", 2, "open", None)]
    # A window without calls has no row.
    assert len(rows(driver)) == LEARNED


def test_what_is_not_usual_does_not_become_usual_by_itself(drive: Drive) -> None:
    driver = after(drive, *[Load(errors=12)] * 15)
    assert [one.revision for one in anomalies(driver)] == list(range(1, 16))
    assert {one.latest.usual for one in anomalies(driver)} == {0.0}


def test_what_lasts_very_long_is_the_new_usual(drive: Drive) -> None:
    driver = after(drive, *[Load(ms=400)] * 20, *[Load(ms=400)] * LEARNED, *[Load(ms=100)])
    ends = [one for one in anomalies(driver) if one.state == "closed"]
    assert [(one.end_reason, one.windows) for one in ends] == [("new_usual", 20)]
    states = [row.state for row in rows(driver)][LEARNED:]
    assert states[:20] == ["anomalous"] * 20
    assert "anomalous" not in states[20:-1]
    # And what was usual once is not any more.
    assert anomalies(driver)[-1].latest.direction == "below"


@pytest.mark.thorough
def test_each_hour_has_its_own_baseline(drive: Drive) -> None:
    driver = drive(
        application(
            RULES.model_copy(update={"window_ms": 5 * WINDOW_MS, "kept_ms": 10 * DAY_MS, "anomaly_ms_max": DAY_MS})
        )
    )

    def hours(day: int, *loads: Load) -> None:
        """One hour after the other, from midnight on."""
        for hour, load in enumerate(loads):
            for window in range(12):
                minute = day * DAY_MS // WINDOW_MS + hour * 60 + window * 5
                pipe(driver, window_of(minute, load), commit_every=500)

    for day in (0, 1):
        hours(day, Load(calls=40), Load(calls=120))
    assert anomalies(driver) == []
    hours(2, Load(calls=120), Load(calls=120))
    close(driver, 2 * DAY_MS // WINDOW_MS + 120)
    assert {(one.opened_ms, one.latest.direction, one.latest.season) for one in anomalies(driver)} == {
        (T0 + 2 * DAY_MS, "above", "hour_of_day")
    }
    assert brief(driver)[-1] == ("traffic", 13, "closed", "usual_again")


def test_words_that_turn_out_to_be_data_are_one_endpoint(drive: Drive) -> None:
    driver = drive(APPLICATION)
    names = [f"n{chr(97 + place // 5)}{chr(97 + place % 5)}" for place in range(25)]
    pipe(driver, [call(1_000 + place, f"/users/{name}") for place, name in enumerate(names)])
    close(driver, 1)
    assert [(row.path, row.calls) for row in rows(driver)] == [("/users/{id}", 25)]
    assert driver.rows["endpoints"] == 1


def test_an_endpoint_that_is_not_called_is_forgotten_and_its_anomalies_with_it(drive: Drive) -> None:
    driver = drive(application(RULES.model_copy(update={"kept_ms": 5 * WINDOW_MS})))
    pipe(driver, windows(*jittered(LEARNED, seed=1)))
    close(driver, LEARNED + 5)
    assert brief(driver)[0] == ("traffic", 1, "open", None)
    assert brief(driver)[-1] == ("traffic", 6, "closed", "forgotten")
    assert driver.rows == {"apis": 0, "endpoints": 0, "seasons": 0}
    assert driver.tallies["open_anomalies"] == 0


def test_a_lookup_names_an_api(drive: Drive) -> None:
    (lookup,) = APPLICATION.lookups
    for parts in ({"host": ""}, {"host": "a", "customer": "a b"}):
        with pytest.raises(LookupWrong):
            lookup.candidates_of(parts)
    assert drive(APPLICATION).look(lookup, KEY) is None


def test_what_is_no_call_is_rejected(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(topics.API_CALLS, KEY, b"{}", at_ms=T0)
    driver.pipe(topics.API_CALLS, None, b"[", at_ms=T0)
    assert len(driver.outputs(topics.REJECTED)) == 2


@pytest.mark.parametrize("commit_every", [1, 7, 1_000])
def test_a_replay_writes_the_same(drive: Drive, commit_every: int) -> None:
    loads = [*jittered(LEARNED, seed=1), Load(ms=400), Load(errors=12), None, *jittered(4, seed=5)]
    piped = windows(*loads)
    first = Driver(APPLICATION)
    for record in records(piped):
        first.pipe(*record[:3], at_ms=record[3])
    close(first, len(loads))
    again = drive(APPLICATION)
    # All at once and much later, as after an outage.
    again.pipe_all(records(piped, came_ms=86_400_000), commit_every=commit_every)
    close(again, len(loads))
    assert anomalies(again) == anomalies(first)
    assert rows(again) == rows(first)
    assert {one.measure for one in anomalies(first)} == {"latency", "server_errors", "traffic"}


def test_an_api_is_deleted_with_what_is_usual_of_it(drive: Drive) -> None:
    driver = after(drive)
    assert all(driver.rows.values())
    came_ms = T0 + 30 * WINDOW_MS
    driver.pipe(topics.API_CALLS, KEY, None, at_ms=came_ms)
    assert not any(driver.rows.values())
    assert driver.outputs(topics.REJECTED) == []
