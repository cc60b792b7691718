"""The replay of a session recording: a page on rrweb's own player, and the session's payloads, passed on from the processor.

rrweb is no part of Playhead: the page loads it from a folder that holds its package from npm.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final, TypeVar

import aiohttp
import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from services.accounts.http.access import PAGE, VIEWS_OF_ONE, Routing
from services.accounts.http.open_requests import OpenRequests
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import TOO_MANY_QUESTIONS, problem_response
from services.rim.http.tls import connector
from services.rim.http.writing import PIECE_BYTES, write_in_time
from services.rim.turns.question_limits import TooManyQuestions
from shared.http.problems import Problem
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.recording import SESSION_ID, RecordingIndex

log = structlog.get_logger(__name__)

_PAGE: Final = Path(__file__).parent / "static" / "pages" / "replay.html"
#: From the processor, between two pieces; a payload as a whole may take long.
SILENT_SECONDS_MAX: Final = 30.0
#: So many payloads and lists are passed on at a time: each holds a connection.
CONNECTIONS_MAX: Final = 100
#: What of the processor's answer the page is given.
_HEADERS_PASSED_ON: Final = ("Content-Encoding", "Content-Length", "Playhead-Content-Type", "Playhead-Sequence")
#: A payload is what a client sent. On the dashboard's origin it must neither run nor be shown as a page.
_PAYLOAD_HEADERS: Final = {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Of a session's payloads; the processor knows the exact range.
_NUMBER_DIGITS_MAX: Final = 12
#: A recorded page is styled as it was, without leave to run or load anything: rrweb puts it into a sandboxed frame.
_PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src data:;"
    " media-src data: blob:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)


class AskedRecording(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a list of payloads."""

    customer: str
    session: str
    from_: Annotated[str, msgspec.Meta(description="the first number of the list")] = msgspec.field(
        name="from", default="0"
    )


class AskedPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a payload."""

    customer: str
    session: str
    number: Annotated[str, msgspec.Meta(description="of the payload, as the list has it")]


OPERATIONS: Final = [
    Operation(
        "/v1/recordings",
        "The stored payloads of a session's recording",
        RecordingIndex,
        AskedRecording,
        statuses=(400, *GUARDED, 502),
        tag="views",
    ),
    Operation(
        "/v1/recordings/payload",
        "One payload of a recording as it came, in the encoding in which it came",
        None,
        AskedPayload,
        media=("application/octet-stream",),
        statuses=(400, *GUARDED, 502),
        tag="views",
    ),
]
Asked = TypeVar("Asked", AskedRecording, AskedPayload)


class Replay:
    """The page and its two questions. `url` is where any slot of application `recordings` answers lookups."""

    def __init__(self, url: str, token: str, rrweb: Path | None, ca_file: str = "") -> None:
        self._ca_file = ca_file
        self._url = url.rstrip("/")
        self._token = token
        self._rrweb = rrweb
        self._session: aiohttp.ClientSession | None = None
        self._open_requests = OpenRequests(CONNECTIONS_MAX)

    def add_to(
        self,
        routing: Routing,
        noting: Callable[[Handler, str, str], Handler],
        open_requests: OpenRequests | None = None,
    ) -> None:
        """Adds the routes; `noting` has each look at a session noted. The client lives as long as the application.

        `open_requests` bounds what is passed on; without it that is bounded by the address of the connection.
        """
        self._open_requests = open_requests or self._open_requests
        routing.get("/replay", self.page, PAGE, name="replay")
        index = noting(self.index, "looked_at_recording", "session")
        routing.get("/v1/recordings", index, VIEWS_OF_ONE, name="recordings")
        payload = noting(self.payload, "looked_at_recording", "session")
        routing.get("/v1/recordings/payload", payload, VIEWS_OF_ONE, name="recordings-payload")
        if self._rrweb is not None:
            routing.files("/rrweb/", self._rrweb, name="rrweb")
        routing.app.on_startup.append(self._open)
        routing.app.on_cleanup.append(self._close)

    async def page(self, _: web.Request) -> web.StreamResponse:
        """The page: `?customer=...&session=...` select what it plays."""
        if self._rrweb is None:
            return problem_response(Problem(404, "Nothing is here", "replay-off", "DASHBOARD_RRWEB_DIR is not set."))
        return web.FileResponse(_PAGE, headers={"Content-Security-Policy": _PAGE_POLICY})

    async def index(self, request: web.Request) -> web.StreamResponse:
        """What of a session is stored, in order; `from` begins later."""
        asked = _asked(request, AskedRecording)
        if asked is None or not _is_number(asked.from_):
            return _wrong("customer and session name a session, from is a number")
        headers = {"Content-Type": "application/json"}
        return await self._passed_on(request, asked, "/index", {"from": asked.from_}, headers)

    async def payload(self, request: web.Request) -> web.StreamResponse:
        """One payload as it came."""
        asked = _asked(request, AskedPayload)
        if asked is None or not _is_number(asked.number):
            return _wrong("customer and session name a session, number a payload of it")
        return await self._passed_on(request, asked, f"/{asked.number}", {}, _PAYLOAD_HEADERS)

    async def _passed_on(
        self,
        request: web.Request,
        asked: AskedRecording | AskedPayload,
        what: str,
        parameters: dict[str, str],
        own_headers: Mapping[str, str],
    ) -> web.StreamResponse:
        assert self._session is not None, "not opened"
        url = f"{self._url}/recordings/{asked.session}{what}"
        try:
            with self._open_requests.counted(request):
                async with self._session.get(url, params={"customer": asked.customer, **parameters}) as answer:
                    if answer.status != 200:
                        return _of(answer.status)
                    headers = {name: answer.headers[name] for name in _HEADERS_PASSED_ON if name in answer.headers}
                    response = web.StreamResponse(headers={**headers, **own_headers})
                    await response.prepare(request)
                    await _pass_on(request, response, answer)
                    return response
        except TooManyQuestions:
            return problem_response(TOO_MANY_QUESTIONS)
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("lookups_away", kind=type(error).__name__)
            return _away()

    async def _open(self, _: web.Application) -> None:
        timeout = aiohttp.ClientTimeout(
            total=None,
            # The wait for one of the connections is counted too.
            connect=SILENT_SECONDS_MAX,
            sock_connect=SILENT_SECONDS_MAX,
            sock_read=SILENT_SECONDS_MAX,
        )
        headers = {"Authorization": f"Bearer {self._token}"}
        # What is packed goes to the browser as it is.
        self._session = aiohttp.ClientSession(
            connector=connector(self._ca_file, limit=CONNECTIONS_MAX),
            timeout=timeout,
            headers=headers,
            auto_decompress=False,
        )

    async def _close(self, _: web.Application) -> None:
        if self._session is not None:
            await self._session.close()


async def _pass_on(request: web.Request, response: web.StreamResponse, answer: aiohttp.ClientResponse) -> None:
    try:
        async for piece in answer.content.iter_chunked(PIECE_BYTES):
            await write_in_time(response, piece)
    except (aiohttp.ClientError, TimeoutError, ConnectionResetError) as error:
        # A body that lacks something must not look whole.
        log.warning("payload_broken_off", kind=type(error).__name__)
        if request.transport is not None:
            request.transport.abort()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS_MAX


def _asked(request: web.Request, kind: type[Asked]) -> Asked | None:
    """The parameters, if they name a session."""
    try:
        asked = msgspec.convert(dict(request.query), kind, strict=False)
    except msgspec.ValidationError:
        return None
    names_one = CUSTOMER_ID.fullmatch(asked.customer) and SESSION_ID.fullmatch(asked.session)
    return asked if names_one else None


def _of(status: int) -> web.Response:
    if status == 404:
        return problem_response(Problem(404, "There is no such session or payload", "unknown"))
    if status >= 500:
        return _away()
    log.error("lookups_refused", status=status)
    return problem_response(Problem(502, "The recording cannot be looked up", "lookups-refused"))


def _away() -> web.Response:
    return problem_response(Problem(503, "The recording cannot be looked up now", "lookups-away"))


def _wrong(detail: str) -> web.Response:
    return problem_response(Problem(400, "The question is wrong", "question", detail))
