"""api_baselines: topics, stores and the fold that learns an API's baselines and reports anomalies. Runs on event time."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from services.processor.applications.api_baselines.anomaly import AnomalyChange, close_all
from services.processor.applications.api_baselines.endpoint import Closed, Endpoint, absorb, close
from services.processor.applications.api_baselines.lookup import (
    Api,
    baselines_lookup,
    endpoint_key,
    season_key,
)
from services.processor.applications.api_baselines.season import Season
from services.processor.applications.api_baselines.settings import BaselineRules
from services.processor.applications.api_baselines.window import Window, ended_ms, take_call
from services.processor.engine.application.application import (
    Application,
    Context,
    EventTime,
    Processor,
    Store,
    StoreSpec,
)
from services.processor.engine.record import Record
from services.processor.engine.windows import Tumbling
from shared import codec, topics
from shared.api.endpoints import CALLS_WITHOUT_API, api_of, place, remove
from shared.api.paths import Paths, display_path, publish_template
from shared.codec import NO_JSON, Undecodable
from shared.schemas.apis import anomaly as api_anomaly
from shared.schemas.apis import window as api_window
from shared.schemas.apis.anomaly import ApiAnomaly
from shared.schemas.apis.call import ApiCall
from shared.schemas.apis.window import ApiWindow

APIS: Final = StoreSpec(name="apis", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(Api).decode)
ENDPOINTS: Final = StoreSpec(
    name="endpoints",
    id=2,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Endpoint).decode,
    record_key=api_of,
)
SEASONS: Final = StoreSpec(
    name="seasons",
    id=3,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Season).decode,
    record_key=api_of,
)

_OPEN_ANOMALIES: Final = "open_anomalies"
_LATE_CALLS: Final = "late_calls"


class _Times(msgspec.Struct):
    """The times of a call."""

    at_ms: int
    duration_us: int | None = None


_times: Final = msgspec.json.Decoder(_Times)


class ApiBaselines:
    """The processor of one partition."""

    def __init__(self, context: Context, rules: BaselineRules) -> None:
        self._context = context
        self._rules = rules
        self._tumbling = Tumbling(rules.window_ms, rules.grace_ms)
        self._apis: Store[Api] = context.store(APIS)
        self._endpoints: Store[Endpoint] = context.store(ENDPOINTS)
        self._seasons: Store[Season] = context.store(SEASONS)

    def fold(self, record: Record) -> None:
        """Takes one call in."""
        if record.value is None or record.key is None:
            raise Undecodable("the record has no key or no value")
        call = codec.API_CALL.decode(record.value)
        api = self._apis.get(record.key) or Api(Paths())
        placed = place(api, call, endpoints_max=self._rules.endpoints_max)
        if placed is None:
            self._elsewhere(record.key, api)
            return
        self._move(record.key, placed.moved)
        if placed.is_changed:
            self._apis.put(record.key, api)
        self._count(endpoint_key(record.key, placed.endpoint), call)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:  # noqa: ARG002 - only endpoints have deadlines
        """An endpoint's next window closes."""
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            return
        closed = close(endpoint, lambda hour: self._seasons.get(season_key(key, hour)), self._rules)
        if closed.learned is not None:
            hour, season = closed.learned
            self._seasons.put(season_key(key, hour), season)
        self._emit_window(key, endpoint, closed)
        self._emit_changes(key, closed.changes)
        if endpoint.is_judged:
            self._publish(key)
        if self._context.clock_ms >= endpoint.called_ms + self._rules.kept_ms:
            self._forget(key, endpoint)
        else:
            self._put(key, endpoint)

    def release(self, spec: StoreSpec[Any], key: bytes) -> None:
        """What it counts of the row is taken back."""
        endpoint = self._endpoints.get(key) if spec is ENDPOINTS else None
        if endpoint is not None:
            self._context.tally(_OPEN_ANOMALIES, -len(endpoint.anomalies))

    def _elsewhere(self, key: bytes, api: Api) -> None:
        # An API goes with its last endpoint: one that never had any would stay, and a scanner makes up hosts.
        if api.endpoints:
            self._apis.put(key, api)
        else:
            self._context.tally(CALLS_WITHOUT_API, 1)

    def _count(self, key: bytes, call: ApiCall) -> None:
        at_ms = ended_ms(call)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            # The first window that has not closed: an earlier call may still come.
            first_ms = self._start_of(self._context.clock_ms - self._rules.grace_ms)
            endpoint = Endpoint(first_ms, at_ms, at_ms)
        endpoint.since_ms = min(endpoint.since_ms, at_ms)
        endpoint.called_ms = max(endpoint.called_ms, at_ms)
        start_ms = self._start_of(at_ms)
        if start_ms < endpoint.next_ms:
            endpoint.late_calls += 1
            self._context.tally(_LATE_CALLS, 1)
        else:
            take_call(endpoint.windows.setdefault(start_ms, Window()), call)
        self._put(key, endpoint)

    def _start_of(self, at_ms: int) -> int:
        return self._tumbling.window_of(max(at_ms, 0)).first_ms

    def _put(self, key: bytes, endpoint: Endpoint) -> None:
        self._endpoints.put(key, endpoint, self._tumbling.closes_ms(self._tumbling.window_of(endpoint.next_ms)))

    def _move(self, key: bytes, moved: Mapping[str, str]) -> None:
        """Only endpoints that were never judged move: what is published stays."""
        for old, new in moved.items():
            old_key, new_key = endpoint_key(key, old), endpoint_key(key, new)
            one = self._endpoints.get(old_key)
            if one is None:
                continue
            self._delete(old_key, one)
            # Of the whole nothing is known: its learning begins with the next window.
            into = self._endpoints.get(new_key) or Endpoint(one.next_ms, self._context.clock_ms, one.called_ms)
            absorb(into, one)
            self._put(new_key, into)

    def _publish(self, key: bytes) -> None:
        api_row_key, _, name = key.partition(b"\x00")
        api = self._apis.get(api_row_key)
        if api is not None and publish_template(api.paths, name.decode().partition(" ")[2]):
            self._apis.put(api_row_key, api)

    def _forget(self, key: bytes, endpoint: Endpoint) -> None:
        self._emit_changes(key, close_all(endpoint.anomalies, "forgotten"))
        self._delete(key, endpoint)
        api_row_key, _, name = key.partition(b"\x00")
        api = self._apis.get(api_row_key)
        if api is None:
            return
        remove(api, name.decode())
        if api.endpoints:
            self._apis.put(api_row_key, api)
        else:
            self._apis.delete(api_row_key)

    def _delete(self, key: bytes, endpoint: Endpoint) -> None:
        for hour in endpoint.hours:
            self._seasons.delete(season_key(key, hour))
        self._endpoints.delete(key)

    def _emit_window(self, key: bytes, endpoint: Endpoint, closed: Closed) -> None:
        figures = closed.figures
        if not figures.calls and not endpoint.late_calls:
            return
        buckets = sorted(closed.window.latency)
        row = ApiWindow(
            schema_version=api_window.SCHEMA_VERSION,
            **_names(key),
            start_ms=figures.start_ms,
            window_ms=self._rules.window_ms,
            calls=figures.calls,
            client_errors=figures.client_errors,
            server_errors=figures.server_errors,
            late_calls=endpoint.late_calls,
            state=closed.state,
            timed_calls=figures.timed_calls,
            latency_us_p50=figures.p50,
            latency_us_p95=figures.p95,
            latency_us_p99=figures.p99,
            latency_buckets=buckets,
            latency_counts=[closed.window.latency[bucket] for bucket in buckets],
        )
        endpoint.late_calls = 0
        self._context.emit(topics.API_WINDOWS, key.partition(b"\x00")[0], codec.API_WINDOW.encode(row))

    def _emit_changes(self, key: bytes, changes: Iterable[AnomalyChange]) -> None:
        for measure, anomaly, end_reason in changes:
            if anomaly.revision == 1:
                self._context.tally(_OPEN_ANOMALIES, 1)
            if end_reason is not None:
                self._context.tally(_OPEN_ANOMALIES, -1)
            row = ApiAnomaly(
                schema_version=api_anomaly.SCHEMA_VERSION,
                **_names(key),
                measure=measure,
                opened_ms=anomaly.opened_ms,
                revision=anomaly.revision,
                state="open" if end_reason is None else "closed",
                end_reason=end_reason,
                last_ms=anomaly.last_ms,
                window_ms=self._rules.window_ms,
                windows=anomaly.windows,
                latest=anomaly.latest,
                worst=anomaly.worst,
            )
            self._context.emit(topics.API_ANOMALIES, key.partition(b"\x00")[0], codec.API_ANOMALY.encode(row))


def _names(key: bytes) -> dict[str, str]:
    """Whose endpoint the row key is of."""
    api, _, name = key.decode().partition("\x00")
    customer_id, _, host = api.partition(":")
    method, _, template = name.partition(" ")
    return {"customer_id": customer_id, "host": host, "method": method, "path": display_path(template)}


def _event_ms(record: Record) -> int:
    try:
        times = _times.decode(record.value or b"")
    except NO_JSON as error:
        raise Undecodable(str(error)) from error
    return times.at_ms + (times.duration_us or 0) // 1000


def application(rules: BaselineRules) -> Application:
    """The application under these rules."""

    def start(context: Context) -> Processor:
        return ApiBaselines(context, rules)

    return Application(
        name="api_baselines",
        inputs=(topics.API_CALLS,),
        outputs=(topics.API_WINDOWS, topics.API_ANOMALIES, topics.REJECTED),
        changelog=topics.API_BASELINES_CHANGELOG,
        stores=(APIS, ENDPOINTS, SEASONS),
        start=start,
        cannot_grow="its windows go by event time, and calls that are handed on come too late for them",
        is_forgetting=True,
        event_time=EventTime(_event_ms, grace_ms=rules.grace_ms, silence_ms=rules.silence_ms),
        lookups=(baselines_lookup(APIS, ENDPOINTS),),
        tallies=(_OPEN_ANOMALIES, _LATE_CALLS, CALLS_WITHOUT_API),
    )
