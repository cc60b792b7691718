"""What is compared: the rules as the application applies them, a fixed threshold, and an EWMA chart. Each says when it alerts."""

from collections import deque
from typing import Final, Protocol

import msgspec

from services.alerts.core.environment import Environment, apply_rules, take_bucket
from services.alerts.core.gathering import Closed
from services.alerts.core.learning import Season
from services.alerts.core.metrics import METRICS
from services.alerts.core.slices import WHOLE
from shared.schemas.alerts.rule import AlertRule
from shared.statistics.weeks import hour_of_week

REBUFFERING: Final = AlertRule(
    id="anomaly", version=1, name="Rebuffering", metric="rebuffering", condition="anomaly", viewers_min=50
)
BY_CDN: Final = msgspec.structs.replace(REBUFFERING, id="cdn", by="cdn")
FAILURES: Final = msgspec.structs.replace(REBUFFERING, id="failures", metric="failures")
SILENCE: Final = AlertRule(
    id="silence", version=1, name="Silence", metric="beacons", condition="anomaly", direction="below", ratio=5.0
)
RULES: Final = (REBUFFERING, BY_CDN, FAILURES, SILENCE)
#: An alert that nothing renews for so long is over; what the peers alert within it is one alert, as with incidents.
QUIET_BUCKETS: Final = 36


class Detector(Protocol):
    """Takes buckets in order."""

    def take(self, closed: Closed) -> int:
        """How many alerts this bucket opens."""
        ...


class Playhead:
    """The core of the application, with rules. `opened` counts by rule."""

    def __init__(self, rules: tuple[AlertRule, ...] = RULES) -> None:
        self.environment = Environment()
        self.seasons: dict[int, Season] = {}
        self.rules = rules
        self.opened: dict[str, int] = {}

    def take(self, closed: Closed) -> int:
        """How many incidents this bucket opens."""
        self.seasons |= take_bucket(self.environment, closed, self.seasons.get)
        opened = [one for one in apply_rules(self.environment, self.rules, "bench", closed) if one.change == "opened"]
        for one in opened:
            self.opened[one.rule_id] = self.opened.get(one.rule_id, 0) + 1
        return len(opened)

    def copy(self, rules: tuple[AlertRule, ...]) -> "Playhead":
        """Another that has learned the same, and goes its own way for less than an hour."""
        other = Playhead(rules)
        other.environment = msgspec.msgpack.decode(msgspec.msgpack.encode(self.environment), type=Environment)
        other.environment.incidents, other.environment.opened_under, other.environment.beyond = {}, {}, {}
        other.seasons = dict(self.seasons)
        # The only one that the other may change within an hour.
        hour = hour_of_week(self.environment.hour_ms)
        if hour in other.seasons:
            other.seasons[hour] = msgspec.msgpack.decode(msgspec.msgpack.encode(other.seasons[hour]), type=Season)
        return other


class _Quieted:
    """Counts an alert once, until it was quiet for three minutes."""

    def __init__(self) -> None:
        self._quiet = QUIET_BUCKETS

    def is_new(self, *, is_beyond: bool) -> int:
        opens = is_beyond and self._quiet >= QUIET_BUCKETS
        self._quiet = 0 if is_beyond else self._quiet + 1
        return int(opens)


class FixedThreshold:
    """The share of the last 30 s, beyond a fixed figure."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._last: deque[tuple[int, int]] = deque(maxlen=6)
        self._once = _Quieted()

    def take(self, closed: Closed) -> int:
        """1 where it alerts."""
        self._last.append(_hits_of(closed))
        hits, of = map(sum, zip(*self._last, strict=True))
        return self._once.is_new(is_beyond=len(self._last) == 6 and of > 0 and hits / of > self._share)


class Ewma:
    """An EWMA chart: the share of a bucket beside its exponentially weighted mean, in weighted deviations.

    Source: S. Roberts, Control Chart Tests Based on Geometric Moving Averages, Technometrics 1 (1959).
    """

    def __init__(self, limit: float, *, fast: float = 0.3, slow: float = 0.002) -> None:
        self._limit, self._fast, self._slow = limit, fast, slow
        self._mean, self._square, self._now, self._taken = 0.0, 0.0, 0.0, 0
        self._once = _Quieted()

    def take(self, closed: Closed) -> int:
        """1 where it alerts."""
        hits, of = _hits_of(closed)
        if not of:
            return 0
        share = hits / of
        self._taken += 1
        slow = max(self._slow, 1 / self._taken)
        self._now = share if self._taken == 1 else self._now + self._fast * (share - self._now)
        deviation = max(self._square - self._mean**2, 1e-12) ** 0.5 * (self._fast / (2 - self._fast)) ** 0.5
        is_beyond = self._taken > 720 and self._now > self._mean + self._limit * deviation
        if not is_beyond:
            self._mean += slow * (share - self._mean)
            self._square += slow * (share**2 - self._square)
        return self._once.is_new(is_beyond=is_beyond)


def _hits_of(closed: Closed) -> tuple[int, int]:
    metric, counts = METRICS["rebuffering"], closed.counts[WHOLE]
    return counts[metric.hits], counts[metric.of]
