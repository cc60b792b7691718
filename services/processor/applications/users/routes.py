"""routes: the REST API of users, in steps. Reads query owners; writes submit a command and wait for its outcome."""

import uuid
from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple

import msgspec

from services.processor.applications.users import problems
from services.processor.applications.users.asked import (
    Cursor,
    client_request,
    cursor_of,
    expect_parameters,
    expect_type,
    if_match,
    limit_of,
    user_id_in,
    versions,
)
from services.processor.applications.users.claims import EmailClaim
from services.processor.applications.users.fields import email_key, merge_patch, whole
from services.processor.applications.users.openapi import document
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
from shared.http.problems import PROBLEM_JSON, Problem
from shared.partitioning import partition_of
from shared.schemas.user import User
from shared.schemas.user_command import (
    SCHEMA_VERSION,
    Create,
    Delete,
    Patch,
    Replace,
    UserCommand,
    Write,
)

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


class _Page(msgspec.Struct, array_like=True):
    """A question to one partition."""

    after: bytes
    limit: int


class _OutcomeOf(msgspec.Struct, array_like=True):
    """The outcome of one request."""

    key: bytes
    submission: str


_outcome: Final = msgspec.msgpack.Decoder(Outcome)
_outcome_of: Final = msgspec.msgpack.Decoder(_OutcomeOf)
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
        expect_type(request, _JSON)
        fields = whole(request.body)
        origin = client_request(request, "")
        user_id = user_id_of(request.headers["idempotency-key"]) if origin.is_keyed else request.nonce
        return (yield from self._write(request, user_id, Create(origin, *fields)))

    def replace(self, request: Request) -> Handling:
        user_id = user_id_in(request)
        expect_type(request, _JSON)
        fields = whole(request.body)
        return (
            yield from self._write(
                request, user_id, Replace(client_request(request, user_id), *fields, if_match(request))
            )
        )

    def patch(self, request: Request) -> Handling:
        user_id = user_id_in(request)
        expect_type(request, _MERGE_PATCH, _JSON)
        changes = merge_patch(request.body)
        return (
            yield from self._write(
                request, user_id, Patch(client_request(request, user_id), *changes, if_match(request))
            )
        )

    def delete(self, request: Request) -> Handling:
        user_id = user_id_in(request)
        return (yield from self._write(request, user_id, Delete(client_request(request, user_id), if_match(request))))

    def get(self, request: Request) -> Handling:
        expect_parameters(request)
        user_id = user_id_in(request)
        found = yield from self._get(request, user_id)
        if found is None:
            raise RequestRefused(problems.not_found(user_id))
        user = codec.USER.decode(found)
        tag = ("ETag", _tag(user.version))
        is_any = request.headers.get("if-none-match", "").strip() == "*"
        if is_any or user.version in (versions(request, "if-none-match") or ()):
            return Reply(304, headers=(tag,))
        return Reply(200, found, (("Content-Type", _JSON), tag))

    def list(self, request: Request) -> Handling:
        expect_parameters(request, "cursor", "limit", "email")
        if "email" in request.query:
            return (yield from self._by_email(request, email_key(request.query["email"])))
        limit = limit_of(request)
        cursor: Cursor | None = cursor_of(request)
        users: list[User] = []
        while cursor is not None and len(users) < limit:
            subject = msgspec.msgpack.encode(_Page(cursor.after, limit - len(users)))
            found = _users.decode((yield Ask(self.page, cursor.partition, subject)) or b"[]")
            users += found
            if len(users) == limit:
                cursor = Cursor(cursor.partition, found[-1].id.encode())
            else:
                cursor = Cursor(cursor.partition + 1, b"") if cursor.partition + 1 < request.partitions else None
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
        expect_parameters(request)
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


def _listed(users: list[User], cursor: Cursor | None) -> Reply:
    token = None if cursor is None else cursor.token
    return Reply(200, msgspec.json.encode({"users": users, "next_cursor": token}), (("Content-Type", _JSON),))


def _refusal(problem: Problem) -> Reply:
    return Reply(problem.status, problem.encode(), (("Content-Type", PROBLEM_JSON),))


def _tag(version: int) -> str:
    return f'"{version}"'
