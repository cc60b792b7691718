"""Operations of the API: typed handlers, from which both routes and the OpenAPI document are made."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from aiohttp import web

from services.accounts.core.credentials import Credential
from services.accounts.core.pages import CURSOR_CHARS_MAX, MEANT, PAGE_DEFAULT, PAGE_MAX, Page
from services.accounts.core.principal import Principal
from services.accounts.http.access import Access, Routing
from services.accounts.http.guard import credential_of, principal_of
from services.accounts.http.problems import ANSWERED, answer_of
from services.accounts.http.requests import BodyWrong, Place, body_of
from services.accounts.store.audit import Actor
from services.rim.http import openapi
from services.rim.turns.question_limits import InTurn

T = TypeVar("T")

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX, description="rows of the page")]
Cursor = Annotated[str, msgspec.Meta(max_length=CURSOR_CHARS_MAX, description=MEANT)]


class PageAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which page of a list."""

    limit: Limit = PAGE_DEFAULT
    cursor: Cursor = ""


class Done(msgspec.Struct, frozen=True):
    """It is done."""

    done: Literal[True] = True


@dataclass(frozen=True)
class Call:
    """One call of an operation."""

    request: web.Request
    principal: Principal
    credential: Credential
    actor: Actor
    body: Any
    query: Any
    #: The parts of the path.
    parts: Mapping[str, str]

    @property
    def page(self) -> Page:
        """Of a list, the page that is asked for. Raises `CursorWrong`."""
        return Page(self.request.path, self.query)


@dataclass(frozen=True)
class Operation:
    """One method of one path: what the document says of it, who may use it, and who answers."""

    method: Literal["get", "post", "patch", "delete"]
    path: str
    summary: str
    access: Access
    handle: Callable[[Call], Awaitable[Any]]
    answers: type[msgspec.Struct] = Done
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    status: int = 200
    #: Media types of an answer that comes in others than JSON.
    media: tuple[str, ...] = ()
    #: Whether it answers 409 where what is asked for is there already, or as much as may be.
    can_conflict: bool = False

    @property
    def described(self) -> openapi.Operation:
        """For the document."""
        return openapi.Operation(
            self.path,
            self.summary,
            self.answers,
            asks=self.query,
            takes=self.body,
            method=self.method,
            media=self.media,
            status=self.status,
            statuses=(400, *openapi.GUARDED, *((409,) if self.can_conflict else ())),
            tag=self.path.split("/")[2],
        )


def add(operation: Operation, routing: Routing, place: Place, turns: InTurn) -> None:
    """Adds the operation's route; its calls take `turns` by organisation."""
    routing.add(
        operation.method.upper(),
        operation.path,
        _served(operation, place, turns),
        operation.access,
        name=operation.described.name,
    )


def _served(
    operation: Operation, place: Place, turns: InTurn
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def serve(request: web.Request) -> web.StreamResponse:
        try:
            principal = principal_of(request)
            call = Call(
                request,
                principal,
                credential_of(request),
                Actor.of(principal, place.address(request)),
                None if operation.body is None else await _body(request, operation.body),
                None if operation.query is None else _query(request, operation.query),
                {name: part.replace("\0", "") for name, part in request.match_info.items()},
            )
            if operation.media:
                # It lasts as long as its client reads, and takes a turn for each of its questions.
                return await operation.handle(call)  # type: ignore[no-any-return]
            async with turns.of(principal.organisation_id):
                found = await operation.handle(call)
        except ANSWERED as error:
            return answer_of(error)
        return web.Response(body=msgspec.json.encode(found), content_type="application/json", status=operation.status)

    return serve


async def _body(request: web.Request, kind: type[T]) -> T:
    """The body, of texts that Postgres takes. Raises `BodyWrong`."""
    found = await body_of(request, kind)
    if b"\\u0000" in msgspec.json.encode(found):
        raise BodyWrong("a text has no character NUL")
    return found


def _query(request: web.Request, kind: type[T]) -> T:
    """The parameters. Raises `BodyWrong`."""
    given = list(request.query.items())
    if len(dict(given)) != len(given) or any("\0" in value for _, value in given):
        raise BodyWrong("each parameter is given once")
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as error:
        raise BodyWrong(str(error)) from None


def ms(at: datetime) -> int:
    """Since 1970."""
    return round(at.timestamp() * 1_000)


def ms_or_none(at: datetime | None) -> int | None:
    """Since 1970; None stays None."""
    return None if at is None else ms(at)


DAYS_MAX: Final = 3_650
