"""Reading of requests of alerts: body, parameters, ids. Each raises `Refused` with the problem that answers the request."""

from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from services.rim.http.problems import Refused
from shared.http.problems import Fault, Problem

BODY_BYTES_MAX: Final = 16 * 1024
ROWS_MAX: Final = 200
_MS_MAX: Final = 4_102_444_800_000

T = TypeVar("T")


async def body_of(request: web.Request, kind: type[T]) -> T:
    """The body, JSON. Raises `Refused`."""
    if request.content_type != "application/json":
        # What a form can send without asking first is not taken.
        raise Refused(Problem(400, "The body is application/json", "body"))
    data = await request.content.read(BODY_BYTES_MAX + 1)
    while len(data) <= BODY_BYTES_MAX and not request.content.at_eof():
        data += await request.content.read(BODY_BYTES_MAX + 1 - len(data))
    if len(data) > BODY_BYTES_MAX:
        raise Refused(Problem(413, f"A body has at most {BODY_BYTES_MAX} bytes", "body-large"))
    try:
        found = msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why, _, where = str(error).partition(" - at `$")
        pointer = "#" + "".join(f"/{part}" for part in where.rstrip("`").split(".") if part)
        raise Refused(Problem(400, "The body is not what this takes", "body", errors=[Fault(why, pointer)])) from None
    if b"\\u0000" in msgspec.json.encode(found):
        # Postgres takes none, in no text.
        raise Refused(Problem(400, "The body is not what this takes", "body", errors=[Fault("a character NUL", "#")]))
    return found


def asked_of(request: web.Request, kind: type[T]) -> T:
    """The parameters. Raises `Refused`."""
    given = {name: request.query.getall(name) for name in request.query}
    repeated = next((name for name, values in given.items() if len(values) > 1), None)
    if repeated is not None:
        raise Refused(
            Problem(400, "A parameter is given once", "parameter", errors=[Fault("given twice", parameter=repeated)])
        )
    if (with_nul := next((name for name, values in given.items() if "\0" in values[0]), None)) is not None:
        raise Refused(
            Problem(400, "A parameter is wrong", "parameter", errors=[Fault("a character NUL", parameter=with_nul)])
        )
    try:
        return msgspec.convert({name: values[0] for name, values in given.items()}, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(Problem(400, "A parameter is wrong", "parameter", errors=[Fault(str(error))])) from None


def wrong(member: str, why: str) -> Refused:
    """A member of the body is wrong."""
    return Refused(Problem(400, "The body is not what this takes", "body", errors=[Fault(why, f"#/{member}")]))


def id_of(request: web.Request) -> str:
    """The id in the path."""
    return str(request.match_info["id"])[:100].replace("\0", "")


def rows_of(limit: int) -> int:
    """How many rows are wanted. Raises `Refused`."""
    if not 1 <= limit <= ROWS_MAX:
        raise Refused(
            Problem(400, f"limit is 1 to {ROWS_MAX}", "parameter", errors=[Fault("limit", parameter="limit")])
        )
    return limit


def time_of(ms: int) -> datetime:
    """A time in ms since 1970. Raises `Refused`."""
    if not 0 <= ms <= _MS_MAX:
        raise Refused(
            Problem(400, "before_ms is ms since 1970", "parameter", errors=[Fault("before_ms", parameter="before_ms")])
        )
    return datetime.fromtimestamp(ms / 1_000, UTC)
