"""A trial of a rule on minutes finds what the application finds on the buckets of which they are made."""

from collections.abc import Iterator

import msgspec
import pytest

from services.alerts.core import trial
from services.alerts.core.environment import Environment, apply_rules, take_bucket
from services.alerts.core.gathering import Closed
from services.alerts.core.learning import Season
from services.alerts.core.metrics import FIELDS
from services.alerts.core.trial import Asked, MinuteRow, Tried
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.alerts.rule import AlertRule
from shared.schemas.live import PAIR_SEPARATOR
from shared.schemas.live_minute import LiveMinute
from tests.unit.alerts.live import T0

HIGH = AlertRule(id="high", version=1, name="High", metric="rebuffering", condition="threshold", threshold=0.05)
BY_CDN = msgspec.structs.replace(HIGH, id="cdn", by="cdn")
UNUSUAL = AlertRule(id="unusual", version=1, name="Unusual", metric="rebuffering", condition="anomaly")
SILENT = AlertRule(
    id="silent", version=1, name="Silent", metric="beacons", condition="anomaly", direction="below", ratio=5.0
)
HOUR = 60


def sums(viewers: int, rebuffering: int, beacons: int = 1_200) -> dict[str, int]:
    """A minute's figures, of as many viewers in each of its steps."""
    return {"viewers_now": 12 * viewers, "rebuffering_now": rebuffering, "beacons": beacons}


def rows(minute: int, whole: dict[str, int], steps: int = 12, **by_cdn: dict[str, int]) -> Iterator[MinuteRow]:
    """The rows of a minute after `T0`."""
    document = msgspec.json.encode(LiveMinute(steps=steps, values={"": whole} if whole else {})).decode()
    yield MinuteRow("", T0 // 60_000 + minute, document)
    if by_cdn:
        yield MinuteRow("cdn", T0 // 60_000 + minute, msgspec.json.encode(LiveMinute(values=by_cdn)).decode())


def tried(rule: AlertRule, given: list[MinuteRow], *, from_minute: int = 0, until_minute: int = 10_080) -> Tried:
    from_ms, until_ms = (T0 + one * 60_000 for one in (from_minute, until_minute))
    return trial.run(Asked(rule=rule, customer_id="acme", from_ms=from_ms, until_ms=until_ms), given)


def minutes(bad: range, until: int) -> list[MinuteRow]:
    """400 viewers, of whom 1 % rebuffer, in `bad` minutes 10 %, all of them on CDN a."""
    found: list[MinuteRow] = []
    for minute in range(until):
        hits = 480 if minute in bad else 48
        a, b = sums(200, hits - 24), sums(200, 24)
        found += rows(minute, sums(400, hits), a=a, b=b)
    return found


def test_a_threshold_would_have_fired_once_when_and_where() -> None:
    found = tried(BY_CDN, minutes(range(20, 25), 60))
    assert (found.fired, found.known_minutes, found.learned_from_ms) == (1, 60, None)
    (one,) = found.incidents
    assert (one.opened_ms - T0, one.closed_ms) == (21 * 60_000, T0 + (25 + 3) * 60_000)
    assert [where.slice for where in one.event.slices] == [{"cdn": "a"}]


def test_what_is_open_at_the_end_is_not_closed() -> None:
    found = tried(HIGH, minutes(range(50, 60), 60))
    assert [(one.closed_ms, one.event.change) for one in found.incidents] == [(None, "opened")]


def test_times_that_are_apart_are_incidents_of_their_own_the_newest_first() -> None:
    found = tried(HIGH, [*minutes(range(10, 12), 40), *minutes(range(41, 43), 60)[80:]])
    assert found.fired == 2
    assert [(one.opened_ms - T0) // 60_000 for one in found.incidents] == [42, 11]


def test_an_anomaly_is_learned_from_the_time_before_and_found() -> None:
    found = tried(UNUSUAL, minutes(range(5 * HOUR, 5 * HOUR + 4), 6 * HOUR), from_minute=4 * HOUR)
    assert (found.fired, found.known_minutes, found.learned_from_ms) == (1, 2 * HOUR, T0)
    assert found.incidents[0].event.slices[0].season == "recent"


@pytest.mark.thorough
def test_an_ad_break_in_each_hour_is_found_on_the_first_day_and_later_only_what_is_more_than_usual_in_it() -> None:
    """In the first minute of each hour 2.2 times as many rebuffer; in the last hour twice that."""
    given: list[MinuteRow] = []
    for minute in range(30 * HOUR + 1):
        hits = 240 if minute % HOUR else 528 if minute < 30 * HOUR else 1_056
        given += rows(minute, sums(400, hits))
    assert tried(UNUSUAL, given, until_minute=5 * HOUR).fired > 2
    found = tried(UNUSUAL, given, from_minute=26 * HOUR, until_minute=30 * HOUR)
    assert (found.fired, found.known_minutes) == (0, 4 * HOUR)
    assert tried(UNUSUAL, given, from_minute=26 * HOUR).fired == 1


def test_silence_is_found() -> None:
    given = [row for minute in range(180) for row in rows(minute, sums(400, 48) if minute < 120 else {})]
    assert [(one.opened_ms - T0) // 60_000 for one in tried(SILENT, given, from_minute=60).incidents] == [121]


def test_minutes_of_which_only_a_part_is_known_are_judged_by_it() -> None:
    given = [row for minute in range(3) for row in rows(minute, sums(200, 200), steps=6)]
    # 400 viewers in six steps: 8 % of them rebuffer.
    assert tried(HIGH, given).fired == 1


def test_a_pair_is_read_in_the_order_in_which_it_is_counted() -> None:
    pair = msgspec.structs.replace(HIGH, filter={"country": "DE"}, by="cdn")
    assert trial.dimensions_read(pair)[0] == ""
    assert set(trial.dimensions_read(pair)) == {"", "cdn,country", "country,cdn"}
    document = LiveMinute(
        values={f"a{PAIR_SEPARATOR}DE": sums(100, 200), f"a{PAIR_SEPARATOR}FR": sums(100, 200)}
    )  # fmt: skip
    given = [
        *rows(0, sums(400, 400)),
        MinuteRow("cdn,country", T0 // 60_000, msgspec.json.encode(document).decode()),
    ]
    (one,) = tried(pair, given).incidents
    assert [where.slice for where in one.event.slices] == [{"cdn": "a", "country": "DE"}]


@pytest.mark.thorough
def test_the_application_finds_the_same_on_the_buckets_of_these_minutes() -> None:
    """Of a week before it is known what is usual; then twice as much, in whole minutes and among all buckets alike."""
    bad = range(30 * HOUR, 30 * HOUR + 5)
    by_minute = tried(UNUSUAL, minutes(bad, 31 * HOUR), from_minute=29 * HOUR)
    environment, seasons, opened = Environment(), dict[int, Season](), list[AlertEvent]()
    viewers, rebuffering = FIELDS.index("viewers_now"), FIELDS.index("rebuffering_now")
    for bucket in range(31 * HOUR * 12):
        counts = [0] * len(FIELDS)
        counts[viewers], counts[rebuffering] = 400, 40 if bucket // 12 in bad else 4
        closed = Closed(T0 + bucket * 5_000, {"": counts}, True)
        seasons |= take_bucket(environment, closed, seasons.get)
        if bucket >= 29 * HOUR * 12:
            opened += [one for one in apply_rules(environment, [UNUSUAL], "acme", closed) if one.change == "opened"]
    assert len(opened) == by_minute.fired == 1
    # In its first minute.
    assert by_minute.incidents[0].opened_ms - 60_000 < opened[0].opened_ms <= by_minute.incidents[0].opened_ms


def test_a_rule_on_rejected_beacons_is_tried_by_release_also_where_nobody_watches() -> None:
    given: list[MinuteRow] = []
    for minute in range(30):
        bad = {"received": 1_200, "rejected": 600 if minute == 20 else 0}
        given += rows(minute, bad, steps=0)
        document = LiveMinute(values={"2.0": bad, "1.0": {"received": 9_000}})
        given.append(MinuteRow("release", T0 // 60_000 + minute, msgspec.json.encode(document).decode()))
    rule = msgspec.structs.replace(HIGH, metric="rejected", by="release")
    found = tried(rule, given)
    assert (found.fired, found.known_minutes) == (1, 30)
    assert [one.slice for one in found.incidents[0].event.slices] == [{"release": "2.0"}]
