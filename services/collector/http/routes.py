"""Translates HTTP to the reception and back; decides only how each kind of client gets an outcome.

mux-embed never gets a 4xx for the content of a body, since it would send its batch again for ever. CMCD players treat a 4xx as
delivered: they get one only if no record of a body has a sequence number. Invalid input is written to topic `rejected` and answered
like valid input. docs/collector.md has the table.
"""

import uuid
from collections.abc import Callable
from typing import Any, Final

import orjson
from aiohttp import web

from services.collector.admission.retry_later import RetryLater
from services.collector.http.answers import (
    STATUSES,
    Answer,
    json_answer,
    native_answer,
    native_retry,
    otlp_answer,
    otlp_retry,
    pixel_answer,
    player_retry,
)
from services.collector.http.reception import Reception
from services.collector.intake import epas, native
from services.collector.intake.api_calls import api_calls
from services.collector.intake.cmcd import cmcd
from services.collector.intake.mux import mux
from services.collector.intake.otlp import otlp
from services.collector.intake.post import Outcome, ParsedBody, Post, Rules
from services.collector.sink.sink import Sink

PREFLIGHT_SECONDS: Final = "86400"
PREFLIGHT_HEADERS_DEFAULT: Final = "Content-Type, Authorization, X-EPAS-Event, X-EPAS-Version"
#: The interval of heartbeats that EPAS clients are given; the web SDK keeps its own default of as much.
EPAS_HEARTBEAT_MS: Final = 30_000
_BEARER: Final = "bearer "


class Routes:
    """The handlers of the collector's paths. `spooled` takes what Mux clients send."""

    def __init__(
        self,
        reception: Reception,
        sink: Sink,
        spooled: Sink,
        *,
        new_session_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._reception = reception
        self._sink = sink
        self._spooled = spooled
        self._new_session_id = new_session_id

    async def mux(self, request: web.Request) -> web.Response:
        """mux-embed and the other Mux SDKs: every path without another route. Their XHR accepts only 200 as success."""
        return await self.mux_refusal(request) or web.Response()

    async def mux_refusal(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to what is not stored; None: it is stored, and answered 200 without a body."""
        try:
            await self._reception.receive(request, mux.parse_beacons, "mux", self._spooled, patient=True)
        except RetryLater as retry:
            # Never 429: their retries ignore it, and each retry is larger than the last.
            return player_retry(retry, limited=503)
        return None

    async def cmcd(self, request: web.Request) -> web.Response:
        """CMCD event mode: the key is the path's second part."""
        try:
            outcome = await self._reception.receive(
                request, cmcd.parse_records, "cmcd", self._sink, key=request.match_info["key"]
            )
        except RetryLater as retry:
            return player_retry(retry, limited=429)
        reason = _reason(outcome)
        if reason == "unnumbered" and not outcome.accepted:
            # This player's records never become a view. It treats 400 as delivered, and its developer sees the reason.
            return web.Response(status=400, text=f"{outcome.rejected[0].detail}\n")
        # "Gone" makes a CMCD player stop sending for this session.
        return web.Response(status=410 if reason == "revoked_key" else 204)

    async def epas(self, request: web.Request) -> web.Response:
        """EPAS: one event; `init` is answered with the session's id."""
        # The web SDK, and nothing else, sends both: it counts in seconds where the specification has ms.
        in_seconds = "Origin" in request.headers and "X-EPAS-Version" in request.headers
        session_id: str | None = None
        begins = False

        def parse(post: Post, rules: Rules) -> ParsedBody:
            nonlocal session_id, begins
            event = epas.parse_event(post, rules, self._new_session_id())
            session_id, begins = event.session_id, event.begins
            return event.parsed

        try:
            outcome = await self._reception.receive(
                request, parse, "epas", self._sink, key=request.match_info["key"], in_seconds=in_seconds
            )
        except RetryLater as retry:
            return player_retry(retry, limited=429)
        answer: dict[str, Any] = {"sessionId": session_id, "valid": bool(outcome.accepted)}
        if begins:
            answer["heartbeatInterval"] = EPAS_HEARTBEAT_MS
        if outcome.rejected:
            answer["message"] = outcome.rejected[0].detail
        status = 200 if outcome.accepted else STATUSES.get(outcome.rejected[0].reason, 400)
        return web.json_response(answer, status=status, dumps=_dumps)

    async def native(self, request: web.Request) -> web.Response:
        """Playhead's own format: one beacon or a batch; an answer for each."""
        return json_answer(await self.native_answer(request))

    async def native_answer(self, request: web.BaseRequest) -> Answer:
        """The answer to what `native` is asked."""
        try:
            outcome = await self._reception.receive(
                request, native.parse_beacons, "native", self._sink, key=key_of(request)
            )
        except RetryLater as retry:
            return native_retry(retry)
        return native_answer(outcome)

    async def pixel(self, request: web.Request) -> web.Response:
        """One native beacon as a query string, for clients that can only load an image."""

        def parse(post: Post, rules: Rules) -> ParsedBody:
            return native.parse_query(request.query.items(), post, rules)

        try:
            await self._reception.receive_query(request, parse, "native", self._sink, key=key_of(request))
        except RetryLater as retry:
            return player_retry(retry, limited=429)
        return pixel_answer()

    async def otlp(self, request: web.Request) -> web.Response:
        """OpenTelemetry's spans; every answer is in the encoding of the request."""
        content_type = request.headers.get("Content-Type", "")
        try:
            outcome = await self._reception.receive(request, otlp.parse_spans, "otlp", self._sink, key=key_of(request))
        except RetryLater as retry:
            return otlp_retry(retry, content_type)
        return otlp_answer(outcome, content_type)

    async def api_calls(self, request: web.Request) -> web.Response:
        """Calls of an API; an answer for each."""
        try:
            outcome = await self._reception.receive(
                request, api_calls.parse_calls, "api", self._sink, key=key_of(request)
            )
        except RetryLater as retry:
            return json_answer(native_retry(retry))
        return json_answer(native_answer(outcome, "calls"))

    async def api_calls_schema(self, _: web.Request) -> web.Response:
        """The JSON Schema of API calls."""
        return web.Response(body=api_calls.json_schema(), content_type="application/schema+json")

    async def schema(self, _: web.Request) -> web.Response:
        """The JSON Schema of the native format."""
        return web.Response(body=native.json_schema(), content_type="application/schema+json")

    async def index(self, _: web.Request) -> web.Response:
        """The page for a user who opens the address in a browser."""
        return web.Response(text="Playhead collector\n")

    async def favicon(self, _: web.Request) -> web.Response:
        """Nothing, without an error in the browser's console."""
        return web.Response(status=204)

    async def preflight(self, request: web.Request) -> web.Response:
        """Every path may be posted to from everywhere. A player whose preflight fails repeats it without end, so no preflight
        fails.

        Which pages may send is decided with the beacons: what another page sent is rejected, by its reason.
        """
        wanted = request.headers.get("Access-Control-Request-Headers", PREFLIGHT_HEADERS_DEFAULT)
        headers = {
            "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
            "Access-Control-Allow-Headers": wanted if wanted.isascii() else PREFLIGHT_HEADERS_DEFAULT,
            "Access-Control-Max-Age": PREFLIGHT_SECONDS,
        }
        return web.Response(status=204, headers=headers)

    async def nothing_here(self, _: web.Request) -> web.Response:
        """Methods and paths that no player uses."""
        return web.Response(
            status=404,
            text="POST beacons to /, /v1/beacons, /cmcd/<key> or /epas/<key>, spans to /v1/traces, API calls to /v1/api-calls,"
            " recordings to /recordings/<session>\n",
        )


def _reason(outcome: Outcome) -> str | None:
    return outcome.rejected[0].reason if outcome.rejected else None


def key_of(request: web.BaseRequest) -> str:
    """The write key that the request's headers or query hold; empty where there is none."""
    authorization = request.headers.get("Authorization", "")
    if authorization[: len(_BEARER)].lower() == _BEARER:
        return authorization[len(_BEARER) :].strip()
    return request.query.get("key", "")


def _dumps(value: Any) -> str:
    return orjson.dumps(value).decode()
