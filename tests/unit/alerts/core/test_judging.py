"""What a rule finds at the end of a bucket: a bump that comes and goes is no anomaly, twice the usual is one."""

import msgspec
import pytest
from msgspec.structs import replace

from services.alerts.core.gathering import Open
from services.alerts.core.judging import (
    BUMP,
    BUMP_POWER,
    BUMP_PROBABILITY_MAX,
    PROBABILITY_MAX,
    PROBABILITY_POWER,
    judge,
)
from services.alerts.core.metrics import FIELDS, METRICS
from services.alerts.core.series import BUCKETS_MAX, Bucket, Series, window
from shared.schemas.alerts.rule import AlertRule, MetricName
from shared.statistics.rates import Learning, likelihood
from shared.statistics.seasons import Expected, Hour
from tests.unit.alerts.live import T0

UNUSUAL = AlertRule(id="unusual", version=1, name="Unusual", metric="rebuffering", condition="anomaly")
REBUFFERING = METRICS["rebuffering"]
VIEWERS = 500
USUAL = 0.03


def learned() -> Learning:
    """Three per cent rebuffer, as was counted for weeks; the rate itself varies by a tenth."""
    season = Expected("hour_of_week", USUAL, 100_000, 1.3, 2.8, USUAL * VIEWERS * BUCKETS_MAX)
    return Learning(Hour(T0), expected=season)


def series(share: float, bad: int, viewers: int = VIEWERS) -> Series:
    """A minute, in whose last `bad` buckets so large a share rebuffers."""
    buckets = []
    for place in range(BUCKETS_MAX):
        counts = [0] * len(FIELDS)
        counts[REBUFFERING.of] = viewers
        counts[REBUFFERING.hits] = round(viewers * (share if place >= BUCKETS_MAX - bad else USUAL))
        buckets.append(Bucket(T0 + place * 5_000, counts, True))
    return Series(buckets, T0, {"rebuffering": learned()})


@pytest.mark.parametrize("bad", [6, 9, 12])
def test_twice_the_usual_is_found_and_a_third_more_is_not(bad: int) -> None:
    end_ms = T0 + 60_000
    assert judge(UNUSUAL, "", series(2 * USUAL, bad), end_ms) is not None
    assert judge(UNUSUAL, "", series(1.3 * USUAL, bad), end_ms) is None


def test_what_is_unlikely_enough_must_be_unlikely_of_a_bump_as_well() -> None:
    length, end_ms, viewers = 6, T0 + 60_000, 10 * VIEWERS
    of = length * viewers

    def probability(hits: int, times: float) -> float:
        found = likelihood(REBUFFERING.rate, learned(), hits, of, times=times)
        assert found is not None
        return found[0]

    hits = next(one for one in range(of) if probability(one, 1.0) < PROBABILITY_MAX * length**PROBABILITY_POWER)
    bump_max = BUMP_PROBABILITY_MAX * (length / BUCKETS_MAX) ** BUMP_POWER
    assert probability(hits, BUMP) >= bump_max
    assert hits / of > UNUSUAL.ratio * USUAL
    assert judge(UNUSUAL, "", series(hits / of, length, viewers), end_ms) is None
    sure = next(one for one in range(of) if probability(one, BUMP) < bump_max)
    assert judge(UNUSUAL, "", series((sure + length) / of, length, viewers), end_ms) is not None


def test_slices_that_a_rule_judges_share_the_probability() -> None:
    end_ms = T0 + 60_000
    share = next(one / 1_000 for one in range(30, 100) if judge(UNUSUAL, "", series(one / 1_000, 12), end_ms))
    assert judge(UNUSUAL, "", series(share, 12), end_ms, slices=1_000_000) is None


def test_what_is_usual_of_the_minute_is_no_anomaly_and_twice_of_it_is() -> None:
    end_ms, usually = T0 + 60_000, [1.5] * BUCKETS_MAX
    assert judge(UNUSUAL, "", series(1.8 * USUAL, 12), end_ms) is not None
    assert judge(UNUSUAL, "", series(1.8 * USUAL, 12), end_ms, usually=usually) is None
    found = judge(UNUSUAL, "", series(3.0 * USUAL, 12), end_ms, usually=usually)
    assert found is not None
    assert found.usual == pytest.approx(1.5 * USUAL)
    # Known from so many viewers, counted each 5 s; a limit is known from none.
    assert found.usual_of == round(100_000.5 / USUAL - 1)
    limit = replace(UNUSUAL, condition="threshold", direction="above", threshold=USUAL)
    of_limit = judge(limit, "", series(3.0 * USUAL, 12), end_ms)
    assert of_limit is not None
    assert of_limit.usual_of is None


@pytest.mark.parametrize(
    ("metric", "counts", "figure"),
    [
        ("bad_views", {"finished_bad": 6, "finished_rated": 8, "views_finished": 20}, 0.75),
        ("rebuffer_fraction", {"finished_rebuffer_ms": 900, "finished_watch_ms": 3_600}, 0.25),
        ("watch_ms", {"finished_watch_ms": 90_000, "views_finished": 3}, 30_000.0),
    ],
)
def test_rules_measure_what_only_finished_views_have(metric: MetricName, counts: dict[str, int], figure: float) -> None:
    bucket = [0] * len(FIELDS)
    for name, count in {"viewers_now": VIEWERS, **counts}.items():
        bucket[FIELDS.index(name)] = count
    one = Series([Bucket(T0, bucket, True)], T0)
    rule = AlertRule(id="r", version=1, name="R", metric=metric, condition="threshold", threshold=figure * 0.9)
    found = judge(rule, "", one, T0 + 5_000)
    assert found is not None
    assert found.value == figure
    assert judge(replace(rule, threshold=figure), "", one, T0 + 5_000) is None


def test_buckets_that_an_earlier_release_stored_have_none_of_what_it_did_not_count() -> None:
    former = msgspec.msgpack.encode([T0, [500, 30, *[0] * 11], True])
    stored = msgspec.msgpack.decode(former, type=Bucket)
    assert window([stored], T0 + 5_000, 1).counts == [500, 30, *[0] * (len(FIELDS) - 2)]
    waiting = msgspec.msgpack.decode(msgspec.msgpack.encode([T0, [0], {"": [500, *[0] * 12]}]), type=Open)
    assert waiting.counts == {"": [500, *[0] * (len(FIELDS) - 1)]}
