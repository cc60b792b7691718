"""api_schemas: topics, stores and the fold that learns an API's schema and reports changes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from services.processor.applications.api_schemas.endpoint import Drift, Endpoint, join, learn, publish
from services.processor.applications.api_schemas.lookup import Api, api_lookup, endpoint_key
from services.processor.applications.api_schemas.settings import SchemaRules
from services.processor.engine.application.application import Application, Context, Processor, Store, StoreSpec
from services.processor.engine.record import Record
from shared import codec, topics
from shared.api.endpoints import CALLS_WITHOUT_API, api_of, place, remove
from shared.api.paths import Paths, display_path, publish_template
from shared.codec import Undecodable
from shared.schemas.apis.call import ApiCall
from shared.schemas.apis.change import SCHEMA_VERSION, ApiChange

APIS: Final = StoreSpec(name="apis", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(Api).decode)
ENDPOINTS: Final = StoreSpec(
    name="endpoints",
    id=2,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(Endpoint).decode,
    record_key=api_of,
)


class ApiSchemas:
    """The processor of one partition."""

    def __init__(self, context: Context, rules: SchemaRules) -> None:
        self._context = context
        self._rules = rules
        self._apis: Store[Api] = context.store(APIS)
        self._endpoints: Store[Endpoint] = context.store(ENDPOINTS)

    def fold(self, record: Record) -> None:
        """Takes one call in."""
        if record.value is None or record.key is None:
            raise Undecodable("the record has no key or no value")
        call = codec.API_CALL.decode(record.value)
        key, clock_ms = record.key, self._context.clock_ms
        api = self._apis.get(key) or Api(clock_ms + self._rules.learning_ms, Paths())
        name = self._placed(key, api, call)
        if name is None:
            self._elsewhere(key, api)
            return
        row_key = endpoint_key(key, name)
        endpoint = self._endpoints.get(row_key) or Endpoint(
            clock_ms, clock_ms + self._rules.learning_ms, call.at_ms, call.at_ms
        )
        endpoint.called_ms = clock_ms
        self._emit_drifts(key, name, call.at_ms, learn(endpoint, call))
        self._store(row_key, endpoint)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:  # noqa: ARG002 - only endpoints have deadlines
        """An endpoint is learned, or has not been called for long."""
        api_row_key, _, name = key.partition(b"\x00")
        endpoint, api = self._endpoints.get(key), self._apis.get(api_row_key)
        if endpoint is None or api is None:
            self._endpoints.delete(key)
            return
        if self._context.clock_ms >= endpoint.called_ms + self._rules.kept_ms:
            self._forget(api_row_key, api, key, name.decode())
            return
        if endpoint.known is None and self._context.clock_ms >= endpoint.learns_until_ms:
            publish(endpoint)
            publish_template(api.paths, name.decode().partition(" ")[2])
            self._apis.put(api_row_key, api)
            self._emit_drifts(api_row_key, name.decode(), endpoint.last_ms, [Drift("learned", "", [], [])])
        self._endpoints.put(key, endpoint, self._due_ms(endpoint))

    def _placed(self, key: bytes, api: Api, call: ApiCall) -> str | None:
        """The name of the call's endpoint, which is made if it is new; None for a call without an endpoint."""
        placed = place(api, call, endpoints_max=self._rules.endpoints_max)
        if placed is None:
            return None
        if placed.new is not None and self._context.clock_ms >= api.learns_until_ms:
            self._emit_drifts(key, placed.new, call.at_ms, [Drift("new_endpoint", "", [], [])])
        self._move(key, placed.moved)
        if placed.is_changed:
            self._apis.put(key, api)
        return placed.endpoint

    def _elsewhere(self, key: bytes, api: Api) -> None:
        # An API goes with its last endpoint: one that never had any would stay, and a scanner makes up hosts.
        if api.endpoints:
            self._apis.put(key, api)
        else:
            self._context.tally(CALLS_WITHOUT_API, 1)

    def _move(self, key: bytes, moved: Mapping[str, str]) -> None:
        for old, new in moved.items():
            one = self._endpoints.get(endpoint_key(key, old))
            self._endpoints.delete(endpoint_key(key, old))
            into = self._endpoints.get(endpoint_key(key, new))
            if one is not None and into is not None:
                join(into, one)
            if one is not None:
                self._store(endpoint_key(key, new), into or one)

    def _forget(self, key: bytes, api: Api, row_key: bytes, name: str) -> None:
        self._endpoints.delete(row_key)
        remove(api, name)
        if api.endpoints:
            self._apis.put(key, api)
        else:
            self._apis.delete(key)

    def _store(self, row_key: bytes, endpoint: Endpoint) -> None:
        # A deadline that fires early is then set again.
        due_ms = self._due_ms(endpoint)
        armed_ms = self._endpoints.deadline_ms(row_key)
        self._endpoints.put(row_key, endpoint, armed_ms if 0 < armed_ms <= due_ms else due_ms)

    def _due_ms(self, endpoint: Endpoint) -> int:
        forgotten_ms = endpoint.called_ms + self._rules.kept_ms
        return forgotten_ms if endpoint.known is not None else min(forgotten_ms, endpoint.learns_until_ms)

    def _emit_drifts(self, key: bytes, name: str, at_ms: int, drifts: Iterable[Drift]) -> None:
        customer_id, _, host = key.decode().partition(":")
        method, _, template = name.partition(" ")
        for drift in drifts:
            change = ApiChange(
                schema_version=SCHEMA_VERSION,
                customer_id=customer_id,
                host=host,
                kind=drift.kind,
                method=method,
                path=display_path(template),
                pointer=drift.pointer,
                was=drift.was,
                now=drift.now,
                at_ms=at_ms,
            )
            self._context.emit(topics.API_CHANGES, key, codec.API_CHANGE.encode(change))


def application(rules: SchemaRules) -> Application:
    """The application under these rules."""

    def start(context: Context) -> Processor:
        return ApiSchemas(context, rules)

    return Application(
        name="api_schemas",
        inputs=(topics.API_CALLS,),
        outputs=(topics.API_CHANGES, topics.REJECTED),
        changelog=topics.API_SCHEMAS_CHANGELOG,
        stores=(APIS, ENDPOINTS),
        start=start,
        cannot_grow="api_baselines reads topic api_calls too, and its windows cannot be divided",
        is_forgetting=True,
        lookups=(api_lookup(APIS, ENDPOINTS),),
        tallies=(CALLS_WITHOUT_API,),
    )
