"""A trial: what a rule would have found, minute by minute, by the code that judges topic `live`. Pure.

Minutes are what is kept for weeks (`shared.schemas.live_minute`). Each is given to the series as twelve buckets, among which its
sums are spread evenly, and the rule is applied at its end. So what lasts less than a minute may be missed, and times are whole
minutes.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from services.alerts.core.environment import Environment, apply_rules
from services.alerts.core.gathering import Closed
from services.alerts.core.learning import SLICES_MAX, Season, Seasons, begin_hour, end_hour, learn_minute
from services.alerts.core.metrics import FIELDS, METRICS, NOTHING
from services.alerts.core.series import BUCKETS_MAX, Bucket, Series
from services.alerts.core.slices import WHOLE, dimensions_of, is_judged
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.alerts.rule import AlertRule
from shared.schemas.live import BUCKET_MS, IDLE_MS
from shared.schemas.live_minute import MINUTE_DECODER, MINUTE_MS, STEPS, LiveMinute
from shared.statistics.weeks import HOUR_MS

#: What is judged, and of an anomaly rule what it learns from before.
JUDGED_MS: Final = 7 * 24 * HOUR_MS
LEARNED_MS: Final = 14 * 24 * HOUR_MS
#: Incidents that an answer names, the newest.
NAMED_MAX: Final = 50


class MinuteRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of `serving.live_minutes`; `minute` since 1970."""

    dimension: str
    minute: int
    document: str


class TriedIncident(msgspec.Struct, frozen=True, kw_only=True):
    """One incident that the rule would have opened: `event` is the last change; `closed_ms` is null where it is open at the end."""

    opened_ms: int
    closed_ms: int | None
    event: AlertEvent


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The incidents that a rule would have found from `from_ms` to `until_ms`.

    `fired` counts its incidents; `incidents` are the newest of them. `known_minutes` of that time were landed. `learned_from_ms`
    is the first minute from which an anomaly rule learned usual values (null: there were none, or the rule is a threshold).
    """

    from_ms: int
    until_ms: int
    known_minutes: int
    learned_from_ms: int | None
    fired: int
    incidents: list[TriedIncident]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried. The rows of minutes follow it, in order of time."""

    rule: AlertRule
    customer_id: str
    from_ms: int
    until_ms: int


def dimensions_read(rule: AlertRule) -> list[str]:
    """The dimensions of `serving.live_minutes` that a trial of the rule needs; of a pair in either order."""
    wanted = sorted(dimensions_of(rule))
    return [WHOLE, *({",".join(wanted), ",".join(reversed(wanted))} if wanted else ())]


def begin_ms(rule: AlertRule, until_ms: int) -> int:
    """From when on minutes are read."""
    return until_ms - JUDGED_MS - (LEARNED_MS if rule.condition == "anomaly" else 0)


def run(asked: Asked, rows: Iterable[MinuteRow]) -> Tried:
    """Judges the minutes."""
    trial = _Trial(asked)
    minute, together = -1, dict[str, str]()
    for row in rows:
        if row.minute != minute:
            trial.add_minute(minute, together)
            minute, together = row.minute, {}
        together[row.dimension] = row.document
    trial.add_minute(minute, together)
    return trial.answer()


class _Trial:
    """One rule on the minutes of one customer."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._metrics = tuple(
            one for one in (METRICS[asked.rule.metric],) if asked.rule.condition == "anomaly" and one.anomaly
        )
        self._environment = Environment()
        self._seasons: dict[int, Season] = {}
        self._incidents: dict[str, TriedIncident] = {}
        self._known = 0
        self._learned_from_ms: int | None = None

    def add_minute(self, minute: int, documents: Mapping[str, str]) -> None:
        """The next minute, of which these dimensions are known."""
        if not documents or WHOLE not in documents:
            return
        steps, counts = self._counted(documents)
        if not steps:
            return
        start_ms, asked = minute * MINUTE_MS, self._asked
        self._add(start_ms, steps, counts)
        if not asked.from_ms <= start_ms < asked.until_ms:
            if self._metrics and self._learned_from_ms is None:
                self._learned_from_ms = start_ms
            return
        self._known += 1
        closed = Closed(start_ms + MINUTE_MS - BUCKET_MS, {}, True)
        for event in apply_rules(self._environment, [asked.rule], asked.customer_id, closed):
            is_over = event.change == "closed"
            found = TriedIncident(
                opened_ms=event.opened_ms, closed_ms=event.at_ms if is_over else None, event=event
            )  # fmt: skip
            self._incidents[event.incident_id] = found

    def answer(self) -> Tried:
        """What was found."""
        return Tried(
            from_ms=self._asked.from_ms,
            until_ms=self._asked.until_ms,
            known_minutes=self._known,
            learned_from_ms=self._learned_from_ms,
            fired=len(self._incidents),
            incidents=list(self._incidents.values())[: -NAMED_MAX - 1 : -1],
        )

    def _counted(self, documents: Mapping[str, str]) -> tuple[int, dict[str, list[int]]]:
        """The number of steps that are known, and counts by slice: of the whole, and of the slices that the rule judges."""
        found: dict[str, list[int]] = {}
        steps = 0
        for dimension, document in documents.items():
            minute = MINUTE_DECODER.decode(document)
            if dimension == WHOLE:
                # What collectors count is known of a whole minute.
                is_received = METRICS[self._asked.rule.metric].is_received
                steps, found[WHOLE] = STEPS if is_received else minute.steps, _counts(minute, "")
                continue
            for value in minute.values:
                name = f"{dimension}={value}"
                if is_judged(self._asked.rule, name):
                    found[name] = _counts(minute, value)
        return steps, found

    def _add(self, start_ms: int, steps: int, counts: Mapping[str, list[int]]) -> None:
        """As `take_bucket` does of a bucket."""
        environment, hour_ms = self._environment, start_ms - start_ms % HOUR_MS
        seasons = Seasons(self._seasons.get)
        if hour_ms != environment.hour_ms:
            self._seasons |= end_hour(environment.series, environment.hour_ms, hour_ms, seasons, self._metrics)
            environment.hour_ms = hour_ms
        for name in counts:
            if name not in environment.series and len(environment.series) < SLICES_MAX:
                environment.series[name] = Series()
                begin_hour(name, environment.series[name], hour_ms, seasons, self._metrics)
            if name in environment.series:
                environment.series[name].seen_ms = start_ms
        environment.series = {
            name: one for name, one in environment.series.items() if one.seen_ms > start_ms - IDLE_MS
        }  # fmt: skip
        for name, one in environment.series.items():
            one.buckets = _buckets(start_ms, steps, counts.get(name, NOTHING))
        learn_minute(environment.series, start_ms + MINUTE_MS, environment.minutes, self._metrics)


def _counts(minute: LiveMinute, value: str) -> list[int]:
    figures = minute.values.get(value, {})
    return [figures.get(field, 0) for field in FIELDS]


def _buckets(start_ms: int, steps: int, sums: list[int]) -> list[Bucket]:
    """The last `steps` buckets of a minute, which add up to its sums."""
    return [
        Bucket(
            start_ms + (BUCKETS_MAX - steps + place) * BUCKET_MS,
            [one * (place + 1) // steps - one * place // steps for one in sums],
            steps == STEPS,
        )
        for place in range(steps)
    ]
