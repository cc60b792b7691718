"""Environment: one customer. Takes closed buckets, learns what is usual, applies rules and follows incidents. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from services.alerts.core import bounds, incidents
from services.alerts.core.gathering import Closed
from services.alerts.core.incidents import Incident
from services.alerts.core.judging import judge
from services.alerts.core.metrics import LEARNED, METRICS, NOTHING, Metric
from services.alerts.core.series import BUCKETS_MAX, Bucket, Series, add, window
from services.alerts.core.slices import WHOLE, is_judged
from services.alerts.core.suspects import rank
from shared.schemas.alerts.event import AlertEvent, Evidence, Suspect
from shared.schemas.alerts.rule import AlertRule
from shared.schemas.live import BUCKET_MS, IDLE_MS
from shared.statistics import rates
from shared.statistics.rates import Hour
from shared.statistics.weeks import HOUR_MS, hour_of_week

#: Slices of one customer that are followed; beyond them only the whole is.
SLICES_MAX: Final = 200
_MINUTE_MS: Final = 60_000
_SHORT_MS: Final = rates.SHORT * BUCKET_MS


class Season(msgspec.Struct, array_like=True):
    """One hour of the week of one customer: by slice and metric the hours that were learned, the newest last."""

    hours: dict[str, dict[str, list[Hour]]] = {}


#: What is stored of an hour of the week.
SeasonOf = Callable[[int], Season | None]


class Environment(msgspec.Struct, array_like=True):
    """One customer. Times in ms since 1970."""

    #: By slice; the whole is "".
    series: dict[str, Series] = {}
    hour_ms: int = 0
    #: By rule.
    incidents: dict[str, Incident] = {}
    #: By rule, then slice: since when it is beyond the rule's figure.
    beyond: dict[str, dict[str, int]] = {}
    #: The rules that open incidents were opened under, to close them.
    opened_under: dict[str, AlertRule] = {}


def take_bucket(environment: Environment, closed: Closed, season_of: SeasonOf) -> dict[int, Season]:
    """Adds a bucket to its series and learns. Returns the seasons that have changed, by hour of the week."""
    hour_ms, end_ms = closed.start_ms - closed.start_ms % HOUR_MS, closed.start_ms + BUCKET_MS
    seasons = _Seasons(season_of)
    changed = _end_hour(environment, hour_ms, seasons) if hour_ms != environment.hour_ms else {}
    for name in closed.counts:
        if name not in environment.series and len(environment.series) < SLICES_MAX:
            environment.series[name] = Series()
            _begin_hour(environment, name, seasons)
        if name in environment.series:
            environment.series[name].seen_ms = closed.start_ms
    environment.series = {
        name: one for name, one in environment.series.items() if one.seen_ms > closed.start_ms - IDLE_MS
    }
    for name, one in environment.series.items():
        # A slice that no partition names is one of zeros.
        add(one, Bucket(closed.start_ms, closed.counts.get(name, NOTHING), closed.is_whole))
    if end_ms % _SHORT_MS == 0:
        for name, one in environment.series.items():
            _learn(name, one, end_ms, is_minute=end_ms % _MINUTE_MS == 0)
    return changed


def apply_rules(
    environment: Environment, rules: Iterable[AlertRule], customer_id: str, closed: Closed
) -> list[AlertEvent]:
    """What the rules make of the bucket: the changes of incidents."""
    end_ms, events = closed.start_ms + BUCKET_MS, list[AlertEvent]()
    current = {rule.id: rule for rule in rules if rule.is_enabled}
    for rule_id in [one for one in environment.incidents if one not in current]:
        events.append(_close(environment, rule_id, customer_id, end_ms))
    for rule in current.values():
        known = environment.opened_under.get(rule.id)
        if known is not None and _measures(known) != _measures(rule):
            events.append(_close(environment, rule.id, customer_id, end_ms))
        event = _apply(environment, rule, customer_id, end_ms)
        if event is not None:
            events.append(event)
    environment.beyond = bounds.oldest(
        {one: slices for one, slices in environment.beyond.items() if one in current and slices}
    )
    bounds.shed(environment.incidents.values())
    return events


def _apply(environment: Environment, rule: AlertRule, customer_id: str, end_ms: int) -> AlertEvent | None:
    metric = METRICS[rule.metric]
    since = environment.beyond.get(rule.id, {})
    # A threshold's figure is of the last minute at the most: only what is longer must also last.
    lasting_ms = rule.for_seconds * 1_000 - (0 if rule.condition == "anomaly" else BUCKETS_MAX * BUCKET_MS)
    beyond, found = dict[str, int](), dict[str, Evidence]()
    for name, series in environment.series.items():
        evidence = judge(rule, name, series, end_ms) if is_judged(rule, name) else None
        if evidence is None:
            continue
        beyond[name] = since.get(name, end_ms)
        if end_ms - beyond[name] >= lasting_ms:
            found[name] = evidence
    # What need not last is found at once.
    environment.beyond[rule.id] = beyond if lasting_ms > 0 else {}
    affected = sum(window(environment.series[name].buckets, end_ms, 1).counts[metric.hits] for name in found)
    incident, event = incidents.follow(
        environment.incidents.get(rule.id),
        rule,
        customer_id,
        found,
        end_ms,
        affected=affected if metric.kind == "share" else 0,
        suspects=_suspects(environment, metric, found, end_ms),
    )
    if incident is None:
        environment.incidents.pop(rule.id, None)
        environment.opened_under.pop(rule.id, None)
    else:
        environment.incidents[rule.id] = incident
        environment.opened_under[rule.id] = rule
    return event


def _suspects(environment: Environment, metric: Metric, found: Mapping[str, Evidence], end_ms: int) -> list[Suspect]:
    """Who has more than the rest, where the whole has too much of what the rule found."""
    if not found:
        return []
    learning = environment.series[WHOLE].learning.get(metric.name) if WHOLE in environment.series else None
    usual = rates.rate_of(learning) if learning is not None else None
    rate = max(found.items(), key=lambda one: (one[1].hits, one[0]))[1].usual if usual is None else usual
    return rank(metric, environment.series, rate, end_ms)


def _close(environment: Environment, rule_id: str, customer_id: str, end_ms: int) -> AlertEvent:
    incident, rule = environment.incidents.pop(rule_id), environment.opened_under.pop(rule_id)
    environment.beyond.pop(rule_id, None)
    return incidents.close(incident, rule, customer_id, "rule_changed", end_ms)


def _measures(rule: AlertRule) -> tuple[object, ...]:
    """What an incident of a rule is about: a rule that measures something else has other incidents."""
    return rule.metric, rule.condition, rule.direction, rule.by, tuple(sorted(rule.filter.items()))


class _Seasons:
    """The seasons that one bucket needs, each read once."""

    def __init__(self, season_of: SeasonOf) -> None:
        self._season_of = season_of
        self._read: dict[int, Season] = {}

    def of(self, hour: int) -> Season:
        """That of an hour of the week, to be changed in place."""
        if hour not in self._read:
            self._read[hour] = self._season_of(hour) or Season()
        return self._read[hour]

    def past(self, name: str, metric: str) -> Callable[[int], Sequence[Hour]]:
        """What is known of a metric of a slice, by hour of the week."""
        return lambda hour: self.of(hour).hours.get(name, {}).get(metric, ())


def _end_hour(environment: Environment, hour_ms: int, seasons: _Seasons) -> dict[int, Season]:
    """Puts the hour that has ended into its season, and takes from the seasons what is usual in the next one."""
    ended_ms, environment.hour_ms = environment.hour_ms, hour_ms
    if ended_ms == 0:
        return {}
    ended = hour_of_week(ended_ms)
    into = seasons.of(ended)
    for name, series in environment.series.items():
        for metric, learning in series.learning.items():
            hours = rates.remember(into.hours.get(name, {}).get(metric, ()), learning.hour)
            if hours:
                into.hours.setdefault(name, {})[metric] = hours
    _forget_old(into, hour_ms)
    for name in environment.series:
        _begin_hour(environment, name, seasons)
    return {ended: into}


def _begin_hour(environment: Environment, name: str, seasons: _Seasons) -> None:
    learning = environment.series[name].learning
    for metric in LEARNED:
        if name == WHOLE or metric.is_of_slices:
            past = seasons.past(name, metric.name)
            learning[metric.name] = rates.begin_hour(learning.get(metric.name), metric.rate, environment.hour_ms, past)


def _forget_old(season: Season, now_ms: int) -> None:
    """Slices that did not come for two months, and the oldest beyond the limit."""
    oldest_ms = now_ms - rates.OCCURRENCES_MAX * 7 * 24 * HOUR_MS
    newest = {
        name: max((hours[-1].start_ms for hours in metrics.values()), default=0)
        for name, metrics in season.hours.items()
    }
    kept = sorted((name for name in newest if newest[name] > oldest_ms), key=lambda name: -newest[name])[:SLICES_MAX]
    season.hours = {name: season.hours[name] for name in kept}


def _learn(name: str, series: Series, end_ms: int, *, is_minute: bool) -> None:
    short, minute = window(series.buckets, end_ms, rates.SHORT), window(series.buckets, end_ms, BUCKETS_MAX)
    for metric in LEARNED:
        if name != WHOLE and not metric.is_of_slices:
            continue
        learning = series.learning[metric.name]
        if short.is_whole:
            of = metric.exposure(short.counts, short.buckets)
            rates.learn_short(metric.rate, learning, short.counts[metric.hits], of)
        if is_minute and minute.is_whole:
            of = metric.exposure(minute.counts, minute.buckets)
            rates.learn_minute(metric.rate, learning, minute.counts[metric.hits], of)
