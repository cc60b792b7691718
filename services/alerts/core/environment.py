"""Environment: one customer. Takes closed buckets, learns what is usual, applies rules and follows incidents. Pure."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from services.alerts.core import bounds, incidents
from services.alerts.core.gathering import Closed
from services.alerts.core.incidents import Incident
from services.alerts.core.judging import judge
from services.alerts.core.learning import (
    SHORT_MS,
    SLICES_MAX,
    Season,
    SeasonOf,
    Seasons,
    begin_hour,
    end_hour,
    learn_minute,
    learn_short,
    usual_times,
)
from services.alerts.core.metrics import LEARNED, METRICS, NOTHING, Metric
from services.alerts.core.series import BUCKETS_MAX, Bucket, Series, add, window
from services.alerts.core.slices import WHOLE, is_judged
from services.alerts.core.suspects import rank
from shared.schemas.alerts.event import AlertEvent, Evidence, SuspectSlice
from shared.schemas.alerts.rule import AlertRule
from shared.schemas.live import BUCKET_MS, IDLE_MS
from shared.statistics import rates
from shared.statistics.minutes import MINUTE_MS, Minutes
from shared.statistics.weeks import HOUR_MS


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
    #: By metric, of the whole.
    minutes: dict[str, Minutes] = {}


def take_bucket(
    environment: Environment, closed: Closed, season_of: SeasonOf, metrics: Sequence[Metric] = LEARNED
) -> dict[int, Season]:
    """Adds a bucket to its series and learns. Returns the seasons that have changed, by hour of the week."""
    hour_ms, end_ms = closed.start_ms - closed.start_ms % HOUR_MS, closed.start_ms + BUCKET_MS
    seasons = Seasons(season_of)
    changed: dict[int, Season] = {}
    if hour_ms != environment.hour_ms:
        changed = end_hour(environment.series, environment.hour_ms, hour_ms, seasons, metrics)
        environment.hour_ms = hour_ms
    for name in closed.counts:
        if name not in environment.series and len(environment.series) < SLICES_MAX:
            environment.series[name] = Series()
            begin_hour(name, environment.series[name], hour_ms, seasons, metrics)
        if name in environment.series:
            environment.series[name].seen_ms = closed.start_ms
    environment.series = {
        name: one for name, one in environment.series.items() if one.seen_ms > closed.start_ms - IDLE_MS
    }
    for name, one in environment.series.items():
        # A slice that no partition names is one of zeros.
        is_whole = closed.is_whole and (name == WHOLE or not closed.is_cut)
        add(one, Bucket(closed.start_ms, closed.counts.get(name, NOTHING), is_whole))
    for name, one in environment.series.items() if end_ms % SHORT_MS == 0 else ():
        learn_short(name, one, end_ms, metrics)
    if end_ms % MINUTE_MS == 0:
        learn_minute(environment.series, end_ms, environment.minutes, metrics)
    return changed


def apply_rules(
    environment: Environment, rules: Iterable[AlertRule], customer_id: str, closed: Closed
) -> list[AlertEvent]:
    """What the rules make of the bucket: the changes of incidents."""
    end_ms, current = closed.start_ms + BUCKET_MS, _in_force(rules)
    events = close_without_rule(environment, current.values(), customer_id, end_ms)
    for rule in current.values():
        event = _apply(environment, rule, customer_id, end_ms)
        if event is not None:
            events.append(event)
    environment.beyond = bounds.oldest(
        {one: slices for one, slices in environment.beyond.items() if one in current and slices}
    )
    bounds.shed(environment.incidents.values())
    return events


def close_without_rule(
    environment: Environment, rules: Iterable[AlertRule], customer_id: str, at_ms: int
) -> list[AlertEvent]:
    """Closes the incidents whose rule is gone, is off or measures something else; returns these changes."""
    current, under = _in_force(rules), environment.opened_under
    ended = [
        rule_id
        for rule_id in environment.incidents
        if rule_id not in current or _measures(under[rule_id]) != _measures(current[rule_id])
    ]
    return [_close(environment, rule_id, customer_id, at_ms) for rule_id in ended]


def _in_force(rules: Iterable[AlertRule]) -> dict[str, AlertRule]:
    """By id."""
    return {rule.id: rule for rule in rules if rule.is_enabled}


def _apply(environment: Environment, rule: AlertRule, customer_id: str, end_ms: int) -> AlertEvent | None:
    metric = METRICS[rule.metric]
    since = environment.beyond.get(rule.id, {})
    # A threshold's figure is of the last minute at the most: only what is longer must also last.
    lasting_ms = rule.for_seconds * 1_000 - (0 if rule.condition == "anomaly" else BUCKETS_MAX * BUCKET_MS)
    beyond, found = dict[str, int](), dict[str, Evidence]()
    usually = usual_times(environment.minutes, metric, end_ms)
    judged = {name: series for name, series in environment.series.items() if is_judged(rule, name)}
    for name, series in judged.items():
        evidence = judge(rule, name, series, end_ms, slices=len(judged), usually=usually)
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


def _suspects(
    environment: Environment, metric: Metric, found: Mapping[str, Evidence], end_ms: int
) -> list[SuspectSlice]:
    """Who has more than the rest, where the whole has too much of what the rule found."""
    if not found:
        return []
    learning = environment.series[WHOLE].learning.get(metric.name) if WHOLE in environment.series else None
    usual = rates.rate_of(learning) if learning is not None else None
    rate = max(found.items(), key=lambda one: (one[1].hits, one[0]))[1].usual if usual is None else usual
    # Not of longer: what was so before it began would hide what it is.
    seconds = max(evidence.seconds for evidence in found.values())
    return rank(metric, environment.series, rate, end_ms, seconds * 1_000 // BUCKET_MS)


def _close(environment: Environment, rule_id: str, customer_id: str, end_ms: int) -> AlertEvent:
    incident, rule = environment.incidents.pop(rule_id), environment.opened_under.pop(rule_id)
    environment.beyond.pop(rule_id, None)
    return incidents.close(incident, rule, customer_id, "rule_changed", end_ms)


def _measures(rule: AlertRule) -> tuple[object, ...]:
    """What an incident of a rule is about: a rule that measures something else has other incidents."""
    return rule.metric, rule.condition, rule.direction, rule.by, tuple(sorted(rule.filter.items()))
