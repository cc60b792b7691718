"""asked: what a request to the REST API of users says: parameters, media type, user, conditions, where its page begins.

What cannot be understood raises `RequestRefused`.
"""

import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec

from services.processor.applications.users import problems
from services.processor.applications.users.openapi import IDEMPOTENCY_KEY_PATTERN, PAGE_DEFAULT, PAGE_MAX
from services.processor.applications.users.problems import RequestRefused
from services.processor.engine.application.requests import Request
from shared.codec import NO_JSON
from shared.http.problems import Fault, Problem
from shared.schemas.user import USER_ID
from shared.schemas.user_command import ClientRequest

_IDEMPOTENCY_KEY: Final = re.compile(IDEMPOTENCY_KEY_PATTERN)
_ENTITY_TAG: Final = re.compile(r'(W/)?"([\x21\x23-\x7e]*)"')


class Cursor(msgspec.Struct, array_like=True):
    """Where a page ended: in which partition, after which user."""

    partition: int
    after: bytes

    @property
    def token(self) -> str:
        """As clients have it: `cursor_of` reads it."""
        return urlsafe_b64encode(msgspec.msgpack.encode(self)).decode()


_cursor: Final = msgspec.msgpack.Decoder(Cursor)


def _bad_request(fault: Fault) -> RequestRefused:
    return RequestRefused(Problem(400, "The request cannot be understood", "bad-request", errors=[fault]))


def expect_parameters(request: Request, *known: str) -> None:
    """Refuses any other parameter."""
    for name in request.query:
        if name not in known:
            raise _bad_request(Fault("is not known here", parameter=name[:100]))


def expect_type(request: Request, *known: str) -> None:
    """Refuses a body of another media type."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in known:
        fault = Fault(f"is not {' or '.join(known)}", header="Content-Type")
        raise RequestRefused(Problem(415, "The body's type is not known", "unknown-type", errors=[fault]))


def user_id_in(request: Request) -> str:
    """The user in the path, as it is stored."""
    user_id = request.parts["id"].lower().replace("-", "")
    if not USER_ID.fullmatch(user_id):
        # No user can have it: no query to an owner is needed.
        raise RequestRefused(problems.not_found(request.parts["id"][:100]))
    return user_id


def client_request(request: Request, user_id: str) -> ClientRequest:
    """What tells a request from others, and from a repetition with other content. `user_id`: empty if a user is to be made."""
    key = request.headers.get("idempotency-key")
    if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
        raise _bad_request(Fault("has not 1 to 128 characters of ASCII without spaces", header="Idempotency-Key"))
    request_id = f"nonce {request.nonce}" if key is None else f"key {key}"
    return ClientRequest(request_id, _fingerprint(request, user_id), key is not None, submission=request.nonce)


def _fingerprint(request: Request, user_id: str) -> str:
    parts = (user_id, request.headers.get("if-match", ""), request.headers.get("content-type", ""))
    hashed = hashlib.sha256(msgspec.msgpack.encode((parts, request.method, request.body)))
    return hashed.hexdigest()[:32]


def if_match(request: Request) -> list[int] | None:
    """The versions of which a user must have one to be changed; None: any."""
    return versions(request, "if-match")


def versions(request: Request, header: str) -> list[int] | None:
    """The versions in a header of entity tags; None where any will do. RFC 9110, 8.8.3 and 13.1.

    If-Match compares strongly, and an unknown tag matches nothing.
    """
    value = request.headers.get(header, "").strip()
    if value in {"", "*"}:
        return None
    versions = []
    for part in value.split(","):
        tag = _ENTITY_TAG.fullmatch(part.strip())
        if tag is None:
            raise _bad_request(Fault('has something else than entity tags such as "3"', header=header.title()))
        is_comparable = tag[1] is None or header == "if-none-match"
        if is_comparable and tag[2].isdecimal() and len(tag[2]) <= 18:
            versions.append(int(tag[2]))
    return versions


def limit_of(request: Request) -> int:
    """How many users a page has at most."""
    value = request.query.get("limit", str(PAGE_DEFAULT))
    is_number = value.isascii() and value.isdecimal() and len(value) <= len(str(PAGE_MAX))
    if not is_number or not 1 <= int(value) <= PAGE_MAX:
        raise _bad_request(Fault(f"is not a number from 1 to {PAGE_MAX}", parameter="limit"))
    return int(value)


def cursor_of(request: Request) -> Cursor:
    """Where the page begins."""
    value = request.query.get("cursor")
    if value is None:
        return Cursor(0, b"")
    try:
        cursor = _cursor.decode(urlsafe_b64decode(value))
    except (ValueError, *NO_JSON) as error:
        raise _bad_request(Fault("is not one that was given out here", parameter="cursor")) from error
    if not 0 <= cursor.partition < request.partitions:
        raise _bad_request(Fault("is not one that was given out here", parameter="cursor"))
    return cursor
