"""alerts: topics, stores and the fold that gathers each customer's gauges, learns what is usual, and emits incidents' changes."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from services.alerts.core.environment import Environment, apply_rules, close_without_rule, take_bucket
from services.alerts.core.gathering import Closed, Gathering, add_gauge, close_next, due_ms, is_empty, take_counts
from services.alerts.core.incidents import QUIET_MS
from services.alerts.core.learning import SLICES_MAX, Season
from services.alerts.core.metrics import LEARNED, LEARNED_RECEIVED, METRICS
from services.alerts.core.slices import pairs_of, received_bucket, received_counts
from services.processor.applications.alerts.settings import AlertsSettings
from services.processor.engine.application.application import Application, Context, Processor, Store, StoreSpec
from services.processor.engine.record import Record
from shared import codec, topics
from shared.codec import Undecodable
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.alerts.rule import AlertRule, AlertRules
from shared.schemas.live import BUCKET_MS


def _customer_of(key: bytes) -> bytes:
    return key.partition(b"\x00")[0]


GATHERINGS: Final = StoreSpec(
    name="gatherings",
    id=1,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Gathering).decode,
    record_key=_customer_of,
)
ENVIRONMENTS: Final = StoreSpec(
    name="environments",
    id=2,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Environment).decode,
    record_key=_customer_of,
)
SEASONS: Final = StoreSpec(
    name="seasons",
    id=3,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Season).decode,
    record_key=_customer_of,
)
RULES: Final = StoreSpec(
    name="rules", id=4, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(AlertRules).decode
)

#: A customer, and an hour of the week, of which nothing came for so long is forgotten.
_FORGOTTEN_MS: Final = 70 * 86_400_000
#: What follows a customer in the keys of what collectors count of it: they do so by their own clocks, also while no view is folded.
_RECEIVED: Final = b"\x00received"
#: If collectors report nothing more of a customer, incidents of what they counted are over after so long.
_SILENT_MS: Final = 2 * QUIET_MS
_OPEN_INCIDENTS: Final = "open_incidents"
_LATE_GAUGES: Final = "late_gauges"


class Alerts:
    """The processor of one partition: all gauges, what was received and all rules of its customers."""

    def __init__(self, context: Context, settings: AlertsSettings) -> None:
        self._context = context
        self._grace_ms = settings.grace_ms
        self._gatherings: Store[Gathering] = context.store(GATHERINGS)
        self._environments: Store[Environment] = context.store(ENVIRONMENTS)
        self._seasons: Store[Season] = context.store(SEASONS)
        self._rules: Store[AlertRules] = context.store(RULES)

    def fold(self, record: Record) -> None:
        """Takes a customer's rules, what a partition counted of it, or what a collector did."""
        if record.key is None:
            raise Undecodable("the record has no key")
        if record.value is None:
            raise Undecodable("the record has no value")
        if record.topic == topics.ALERT_RULES.name:
            self._take_rules(record.key, record.value)
        elif record.topic == topics.RECEIVED.name:
            self._take_received(record.key, record.value, record.timestamp_ms)
        else:
            self._take_gauge(record.key, record.value)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        """The oldest open bucket of a customer has waited long enough; or a customer, or a season, was not seen for long."""
        if spec is SEASONS:
            self._seasons.delete(key)
            return
        gathering = self._gatherings.get(key)
        if gathering is None:
            return
        environment = self._environments.get(key)
        if gathering.open or (environment is not None and environment.incidents):
            if not gathering.open and key.endswith(_RECEIVED):
                bucket_ms = self._context.clock_ms - self._context.clock_ms % BUCKET_MS
                self._judge(key, Closed(bucket_ms, {}, is_whole=False))
            self._close(key, gathering)
        else:
            self._gatherings.delete(key)
            self._environments.delete(key)

    def release(self, spec: StoreSpec[Any], key: bytes) -> None:
        """What it counts of the row is taken back."""
        environment = self._environments.get(key) if spec is ENVIRONMENTS else None
        if environment is not None:
            self._context.tally(_OPEN_INCIDENTS, -len(environment.incidents))

    def _take_rules(self, key: bytes, value: bytes) -> None:
        rules, known = codec.ALERT_RULES.decode(value), self._rules.get(key)
        # Two that publish may do so in any order.
        if known is None or rules.version > known.version:
            self._rules.put(key, rules)
            # At once: of a customer that is silent no bucket comes that would be judged.
            self._close_without_rule(key)
            self._close_without_rule(key + _RECEIVED)

    def _take_gauge(self, key: bytes, value: bytes) -> None:
        live = codec.LIVE.decode(value)
        if key != live.customer_id.encode():
            # An earlier release wrote gauges by partition: what of a customer is here is not the whole.
            return
        known, rules = self._gatherings.get(key), self._rules.get(key)
        if known is None and rules is None and is_empty(live):
            # Partitions go on to say so for minutes of a customer whose data was deleted: nothing is kept of it.
            return
        gathering = known or Gathering()
        pairs = pairs_of(rules.rules) if rules else frozenset[frozenset[str]]()
        clock_ms = self._context.clock_ms
        if not add_gauge(gathering, live, clock_ms, grace_ms=self._grace_ms, slices_max=SLICES_MAX, pairs=pairs):
            self._context.tally(_LATE_GAUGES, 1)
        self._close(key, gathering)

    def _take_received(self, key: bytes, value: bytes, at_ms: int) -> None:
        received = codec.RECEIVED.decode(value)
        if key != received.customer_id.encode():
            raise Undecodable("the key is not the customer")
        own, counts = key + _RECEIVED, received_counts(received)
        known, clock_ms = self._gatherings.get(own), self._context.clock_ms
        if known is None and self._rules.get(key) is None and not any(any(one) for one in counts.values()):
            return
        gathering = known or Gathering()
        bucket_ms = received_bucket(received, at_ms)
        limits = {"grace_ms": self._grace_ms, "slices_max": SLICES_MAX}
        if not take_counts(gathering, received.process, bucket_ms, counts, clock_ms, **limits):
            self._context.tally(_LATE_GAUGES, 1)
        self._close(own, gathering)

    def _close(self, key: bytes, gathering: Gathering) -> None:
        while (closed := close_next(gathering, self._context.clock_ms)) is not None:
            self._judge(key, closed)
        environment = self._environments.get(key)
        is_open = key.endswith(_RECEIVED) and environment is not None and bool(environment.incidents)
        later_ms = self._context.clock_ms + (_SILENT_MS if is_open else _FORGOTTEN_MS)
        self._gatherings.put(key, gathering, due_ms(gathering) or later_ms)

    def _judge(self, key: bytes, closed: Closed) -> None:
        """One bucket of what the key names: of a customer's views, or of what collectors received of it."""
        environment = self._environments.get(key) or Environment()
        open_before = len(environment.incidents)
        metrics = LEARNED_RECEIVED if key.endswith(_RECEIVED) else LEARNED
        changed = take_bucket(environment, closed, lambda hour: self._seasons.get(_season_key(key, hour)), metrics)
        for hour, season in changed.items():
            self._seasons.put(_season_key(key, hour), season, self._context.clock_ms + _FORGOTTEN_MS)
        self._emit(apply_rules(environment, self._rules_of(key), _customer_of(key).decode(), closed))
        self._context.tally(_OPEN_INCIDENTS, len(environment.incidents) - open_before)
        self._environments.put(key, environment)

    def _close_without_rule(self, key: bytes) -> None:
        """Closes the incidents of what the key names that no rule has any more."""
        environment = self._environments.get(key)
        if environment is None or not environment.incidents:
            return
        customer_id = _customer_of(key).decode()
        events = close_without_rule(environment, self._rules_of(key), customer_id, self._context.clock_ms)
        if events:
            self._emit(events)
            self._context.tally(_OPEN_INCIDENTS, -len(events))
            self._environments.put(key, environment)

    def _rules_of(self, key: bytes) -> list[AlertRule]:
        """The rules that judge what the key names."""
        known = self._rules.get(_customer_of(key))
        rules = known.rules if known else []
        return [one for one in rules if METRICS[one.metric].is_received == key.endswith(_RECEIVED)]

    def _emit(self, events: Iterable[AlertEvent]) -> None:
        for event in events:
            event_key = f"{event.customer_id}:{event.incident_id}".encode()
            self._context.emit(topics.ALERT_EVENTS, event_key, codec.ALERT_EVENT.encode(event))


def _season_key(key: bytes, hour: int) -> bytes:
    return key + b"\x00" + str(hour).encode()


def application(settings: AlertsSettings) -> Application:
    """The application under these settings."""

    def start(context: Context) -> Processor:
        return Alerts(context, settings)

    return Application(
        name="alerts",
        # Of equal times rules come first: they are in force for the gauges after them.
        inputs=(topics.ALERT_RULES, topics.LIVE, topics.RECEIVED),
        outputs=(topics.ALERT_EVENTS, topics.REJECTED),
        changelog=topics.ALERTS_CHANGELOG,
        stores=(GATHERINGS, ENVIRONMENTS, SEASONS, RULES),
        start=start,
        cannot_grow="topic alert_rules is compacted, so a rule that has moved would be in two partitions",
        # Rules, incidents and what was learned go without an event: nobody is notified that an incident is over.
        is_forgetting=True,
        tallies=(_OPEN_INCIDENTS, _LATE_GAUGES),
    )
