"""routes: the REST API of users, in steps. Reads query owners; writes submit a command and wait for its outcome."""

import hashlib
import re
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple

import msgspec

from services.processor.applications.users import problems
from services.processor.applications.users.claims import EmailClaim
from services.processor.applications.users.fields import email_key, merge_patch, whole
from services.processor.applications.users.openapi import IDEMPOTENCY_KEY_PATTERN, PAGE_DEFAULT, PAGE_MAX, document
from services.processor.applications.users.outcomes import Outcome, outcome_key
from services.processor.applications.users.problems import RequestRefused
from services.processor.applications.users.user import UserRow
from services.processor.engine.application.application import StoreSpec
from services.processor.engine.application.requests import (
    Ask,
    Await,
    CommittedRows,
    Handling,
    Query,
    Reply,
    Request,
    Route,
    Step,
    Submit,
)
from shared import codec, topics
from shared.codec import NO_JSON
from shared.http.problems import PROBLEM_JSON, Fault, Problem
from shared.partitioning import partition_of
from shared.schemas.user import USER_ID, User
from shared.schemas.user_command import (
    SCHEMA_VERSION,
    ClientRequest,
    Create,
    Delete,
    Patch,
    Replace,
    UserCommand,
    Write,
)

_IDEMPOTENCY_KEY: Final = re.compile(IDEMPOTENCY_KEY_PATTERN)
_ENTITY_TAG: Final = re.compile(r'(W/)?"([\x21\x23-\x7e]*)"')
_JSON: Final = "application/json"
_MERGE_PATCH: Final = "application/merge-patch+json"
#: From an idempotency key to the id of the user that it makes: a repeated request goes to the same owner from every slot.
_NAMESPACE: Final = uuid.UUID("4f2e2c1e-6a8f-4d0e-9d43-5f6f0a8c7b11")


class Stores(NamedTuple):
    """What the questions are answered from."""

    users: StoreSpec[UserRow]
    claims: StoreSpec[EmailClaim]
    outcomes: StoreSpec[Outcome]


class Served(NamedTuple):
    """The API and the questions that it asks."""

    routes: tuple[Route, ...]
    queries: tuple[Query, ...]


class _Cursor(msgspec.Struct, array_like=True):
    """Where a page ended: in which partition, after which user."""

    partition: int
    after: bytes


class _Page(msgspec.Struct, array_like=True):
    """The requests to one partition."""

    after: bytes
    limit: int


class _OutcomeOf(msgspec.Struct, array_like=True):
    """The outcome of one request."""

    key: bytes
    submission: str


_outcome: Final = msgspec.msgpack.Decoder(Outcome)
_outcome_of: Final = msgspec.msgpack.Decoder(_OutcomeOf)
_cursor: Final = msgspec.msgpack.Decoder(_Cursor)
_page: Final = msgspec.msgpack.Decoder(_Page)
_users: Final = msgspec.json.Decoder(list[User])


def user_id_of(idempotency_key: str) -> str:
    """The id of the user that a POST with this key makes."""
    return uuid.uuid5(_NAMESPACE, idempotency_key).hex


def routes(stores: Stores) -> Served:
    """The API over these stores."""

    def user(rows: CommittedRows, subject: bytes) -> bytes | None:
        row = rows.get(stores.users, subject)
        return None if row is None else codec.USER.encode(row.to_api(subject.decode()))

    def outcome(rows: CommittedRows, subject: bytes) -> bytes | None:
        request = _outcome_of.decode(subject)
        found = rows.get(stores.outcomes, request.key)
        return None if found is None or not found.answers(request.submission) else msgspec.msgpack.encode(found)

    def holder(rows: CommittedRows, subject: bytes) -> bytes | None:
        """The user's id; empty if no user has the address; None while a claim is open."""
        claim = rows.get(stores.claims, subject)
        if claim is None:
            return b""
        return claim.user_id.encode() if claim.is_confirmed else None

    def page(rows: CommittedRows, subject: bytes) -> bytes | None:
        bounds = _page.decode(subject)
        found = rows.page(stores.users, bounds.after, bounds.limit)
        return msgspec.json.encode([row.to_api(key.decode()) for key, row in found])

    api = _Api(Query("user", user), Query("outcome", outcome), Query("holder", holder), Query("page", page))
    return Served(
        routes=(
            Route("GET", "/users", _answered(api.list)),
            Route("POST", "/users", _answered(api.create)),
            Route("GET", "/users/{id}", _answered(api.get)),
            Route("PUT", "/users/{id}", _answered(api.replace)),
            Route("PATCH", "/users/{id}", _answered(api.patch)),
            Route("DELETE", "/users/{id}", _answered(api.delete)),
            Route("GET", "/openapi.json", _openapi),
        ),
        queries=(api.user, api.outcome, api.holder, api.page),
    )


def _openapi(_: Request) -> Handling:
    yield from ()
    return Reply(200, document(), (("Content-Type", _JSON),))


def _answered(handle: Callable[[Request], Handling]) -> Callable[[Request], Handling]:
    """What a handler refuses is answered as its problem."""

    def handling(request: Request) -> Handling:
        try:
            return (yield from handle(request))
        except RequestRefused as refused:
            return _refusal(refused.problem)

    return handling


class _Api(NamedTuple):
    """The handlers."""

    user: Query
    outcome: Query
    holder: Query
    page: Query

    def create(self, request: Request) -> Handling:
        _expect_type(request, _JSON)
        fields = whole(request.body)
        origin = _client_request(request, "")
        user_id = user_id_of(request.headers["idempotency-key"]) if origin.is_keyed else request.nonce
        return (yield from self._write(request, user_id, Create(origin, *fields)))

    def replace(self, request: Request) -> Handling:
        user_id = _user_id(request)
        _expect_type(request, _JSON)
        fields = whole(request.body)
        return (
            yield from self._write(
                request, user_id, Replace(_client_request(request, user_id), *fields, _if_match(request))
            )
        )

    def patch(self, request: Request) -> Handling:
        user_id = _user_id(request)
        _expect_type(request, _MERGE_PATCH, _JSON)
        changes = merge_patch(request.body)
        return (
            yield from self._write(
                request, user_id, Patch(_client_request(request, user_id), *changes, _if_match(request))
            )
        )

    def delete(self, request: Request) -> Handling:
        user_id = _user_id(request)
        return (yield from self._write(request, user_id, Delete(_client_request(request, user_id), _if_match(request))))

    def get(self, request: Request) -> Handling:
        _expect_parameters(request)
        user_id = _user_id(request)
        found = yield from self._get(request, user_id)
        if found is None:
            raise RequestRefused(problems.not_found(user_id))
        user = codec.USER.decode(found)
        tag = ("ETag", _tag(user.version))
        is_any = request.headers.get("if-none-match", "").strip() == "*"
        if is_any or user.version in (_versions(request, "if-none-match") or ()):
            return Reply(304, headers=(tag,))
        return Reply(200, found, (("Content-Type", _JSON), tag))

    def list(self, request: Request) -> Handling:
        _expect_parameters(request, "cursor", "limit", "email")
        if "email" in request.query:
            return (yield from self._by_email(request, email_key(request.query["email"])))
        limit = _limit(request)
        cursor: _Cursor | None = _cursor_of(request)
        users: list[User] = []
        while cursor is not None and len(users) < limit:
            subject = msgspec.msgpack.encode(_Page(cursor.after, limit - len(users)))
            found = _users.decode((yield Ask(self.page, cursor.partition, subject)) or b"[]")
            users += found
            if len(users) == limit:
                cursor = _Cursor(cursor.partition, found[-1].id.encode())
            else:
                cursor = _Cursor(cursor.partition + 1, b"") if cursor.partition + 1 < request.partitions else None
        return _listed(users, cursor)

    def _get(self, request: Request, user_id: str) -> Generator[Step, Any, bytes | None]:
        key = user_id.encode()
        found: bytes | None = yield Ask(self.user, partition_of(key, request.partitions), key)
        return found

    def _by_email(self, request: Request, email: str) -> Handling:
        """The address names its holder. Asks again where that user has just given it up: the address's row follows soon."""
        key = email.encode()
        while True:
            holder = yield Await(self.holder, partition_of(key, request.partitions), key)
            if not holder:
                return _listed([], None)
            found = yield from self._get(request, holder.decode())
            if found is not None and email_key((user := codec.USER.decode(found)).email) == email:
                return _listed([user], None)

    def _write(self, request: Request, user_id: str, write: Write) -> Handling:
        _expect_parameters(request)
        key = user_id.encode()
        yield Submit(topics.USER_COMMANDS, key, codec.USER_COMMAND.encode(UserCommand(SCHEMA_VERSION, write)))
        subject = msgspec.msgpack.encode(_OutcomeOf(outcome_key(key, write.request.id), write.request.submission))
        outcome = _outcome.decode((yield Await(self.outcome, partition_of(key, request.partitions), subject)))
        if outcome.fingerprint != write.request.fingerprint:
            raise RequestRefused(problems.other_request())
        if outcome.status >= 400:
            retry = (("Retry-After", "1"),) if outcome.status == 503 else ()
            return Reply(outcome.status, outcome.body, (("Content-Type", PROBLEM_JSON), *retry))
        if outcome.version is None:
            return Reply(outcome.status)
        headers = (("Content-Type", _JSON), ("ETag", _tag(outcome.version)))
        return Reply(outcome.status, outcome.body, (*headers, ("Location", f"/users/{user_id}")))


def _listed(users: list[User], cursor: _Cursor | None) -> Reply:
    token = None if cursor is None else urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode()
    return Reply(200, msgspec.json.encode({"users": users, "next_cursor": token}), (("Content-Type", _JSON),))


def _refusal(problem: Problem) -> Reply:
    return Reply(problem.status, problem.encode(), (("Content-Type", PROBLEM_JSON),))


def _tag(version: int) -> str:
    return f'"{version}"'


def _bad_request(fault: Fault) -> RequestRefused:
    return RequestRefused(Problem(400, "The request cannot be understood", "bad-request", errors=[fault]))


def _expect_parameters(request: Request, *known: str) -> None:
    for name in request.query:
        if name not in known:
            raise _bad_request(Fault("is not known here", parameter=name[:100]))


def _expect_type(request: Request, *known: str) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in known:
        fault = Fault(f"is not {' or '.join(known)}", header="Content-Type")
        raise RequestRefused(Problem(415, "The body's type is not known", "unknown-type", errors=[fault]))


def _user_id(request: Request) -> str:
    user_id = request.parts["id"].lower().replace("-", "")
    if not USER_ID.fullmatch(user_id):
        # No user can have it: no query to an owner is needed.
        raise RequestRefused(problems.not_found(request.parts["id"][:100]))
    return user_id


def _client_request(request: Request, user_id: str) -> ClientRequest:
    key = request.headers.get("idempotency-key")
    if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
        raise _bad_request(Fault("has not 1 to 128 characters of ASCII without spaces", header="Idempotency-Key"))
    request_id = f"nonce {request.nonce}" if key is None else f"key {key}"
    return ClientRequest(request_id, _fingerprint(request, user_id), key is not None, submission=request.nonce)


def _fingerprint(request: Request, user_id: str) -> str:
    parts = (user_id, request.headers.get("if-match", ""), request.headers.get("content-type", ""))
    hashed = hashlib.sha256(msgspec.msgpack.encode((parts, request.method, request.body)))
    return hashed.hexdigest()[:32]


def _if_match(request: Request) -> list[int] | None:
    return _versions(request, "if-match")


def _versions(request: Request, header: str) -> list[int] | None:
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


def _limit(request: Request) -> int:
    value = request.query.get("limit", str(PAGE_DEFAULT))
    is_number = value.isascii() and value.isdecimal() and len(value) <= len(str(PAGE_MAX))
    if not is_number or not 1 <= int(value) <= PAGE_MAX:
        raise _bad_request(Fault(f"is not a number from 1 to {PAGE_MAX}", parameter="limit"))
    return int(value)


def _cursor_of(request: Request) -> _Cursor:
    value = request.query.get("cursor")
    if value is None:
        return _Cursor(0, b"")
    try:
        cursor = _cursor.decode(urlsafe_b64decode(value))
    except (ValueError, *NO_JSON) as error:
        raise _bad_request(Fault("is not one that was given out here", parameter="cursor")) from error
    if not 0 <= cursor.partition < request.partitions:
        raise _bad_request(Fault("is not one that was given out here", parameter="cursor"))
    return cursor
