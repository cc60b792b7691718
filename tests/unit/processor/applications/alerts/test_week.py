"""A replay of a whole week gives the same incidents, wherever its commits are and whatever crashes between them.

Each day has one dense stretch, of which what is usual is learned, and a bucket each ten minutes besides.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from services.processor.engine.driver import Driver
from shared import codec
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.alerts.rule import SCHEMA_VERSION, AlertRule, AlertRules
from shared.schemas.live import BUCKET_MS, Live
from shared.topics import ALERT_EVENTS, ALERT_RULES, LIVE, REJECTED, Topic
from tests.unit.alerts.live import T0, live, slice_of
from tests.unit.processor.applications.alerts.test_alerts import ALERTS, BY_CDN, HIGH

DAY_MS = 86_400_000
DENSE_FROM_MS, DENSE_UNTIL_MS = 20 * 3_600_000, 20 * 3_600_000 + 24 * 60_000
UNUSUAL = AlertRule(id="unusual", version=1, name="Unusual", metric="rebuffering", condition="anomaly")
BAD = AlertRule(id="bad", version=1, name="Bad", metric="bad_views", condition="threshold", threshold=0.5)
RULES = (HIGH, BY_CDN, UNUSUAL, BAD)
#: A stretch of CDN a, on the fifth and the seventh day.
INCIDENTS = tuple((day * DAY_MS + DENSE_FROM_MS + 900_000, day * DAY_MS + DENSE_FROM_MS + 1_080_000) for day in (4, 6))
Records = list[tuple[Topic, bytes, bytes, int]]


def gauges() -> Iterator[Live]:
    """Of two partitions."""
    rng = np.random.default_rng(22)
    for day in range(7):
        dense = range(DENSE_FROM_MS, DENSE_UNTIL_MS, BUCKET_MS)
        for at_ms in sorted({*range(0, DAY_MS, 600_000), *dense}):
            ms = day * DAY_MS + at_ms
            is_bad = any(begin <= ms < end for begin, end in INCIDENTS)
            for partition in range(2):
                counts = {}
                for cdn, share in (("cdn=a", 0.2 if is_bad else 0.02), ("cdn=b", 0.02)):
                    finished = int(rng.poisson(6))
                    counts[cdn] = {
                        "viewers_now": 200,
                        "rebuffering_now": int(rng.binomial(200, share)),
                        "views_finished": finished,
                        "finished_rated": finished,
                        "finished_bad": int(rng.binomial(finished, min(share * 4, 1.0))),
                    }
                whole = {name: sum(one[name] for one in counts.values()) for name in counts["cdn=a"]}
                slices = {name: slice_of(**one) for name, one in counts.items()}
                yield live(T0 + ms, partition, slices=slices, **whole)


@pytest.fixture(scope="module")
def week() -> Records:
    rules = AlertRules(schema_version=SCHEMA_VERSION, customer_id="acme", version=1, rules=list(RULES))
    records = [(ALERT_RULES, b"acme", codec.ALERT_RULES.encode(rules), T0)]
    records += [(LIVE, b"acme", codec.LIVE.encode(one), one.bucket_ms + BUCKET_MS + 100) for one in gauges()]
    return records


def replayed(driver: Driver, week: Records, cuts: list[int]) -> list[AlertEvent]:
    """What comes of the week where commits are at these records."""
    for begin, end in zip([0, *cuts], [*cuts, len(week)], strict=True):
        driver.pipe_all(week[begin:end], commit_every=max(end - begin, 1))
    assert driver.outputs(REJECTED) == []
    return [codec.ALERT_EVENT.decode(output.value or b"") for output in driver.outputs(ALERT_EVENTS)]


def cuts_of(seed: int, length: int, number: int) -> list[int]:
    drawn = np.random.default_rng(seed).choice(np.arange(1, length), number, replace=False)
    return sorted(int(one) for one in drawn)


@pytest.mark.thorough
def test_a_replay_of_a_week_gives_the_same_incidents(week: Records) -> None:
    first = replayed(Driver(ALERTS), week, [])
    assert {one.rule_id for one in first} == {rule.id for rule in RULES}
    unusual = [one for one in first if one.rule_id == "unusual" and one.change == "opened"]
    assert [any(begin < one.at_ms - T0 <= end for begin, end in INCIDENTS) for one in unusual] == [True, True]
    assert replayed(Driver(ALERTS), week, cuts_of(1, len(week), 12)) == first
    assert replayed(Driver(ALERTS, "crash after commit"), week, cuts_of(2, len(week), 6)) == first
    assert replayed(Driver(ALERTS, "crash before commit"), week, cuts_of(3, len(week), 6)) == first
