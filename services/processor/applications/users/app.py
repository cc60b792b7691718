"""users: topics, stores and the fold that changes users and, with the partitions of e-mail addresses, assigns the addresses.

A write that needs an address is a saga over two partitions. Each step is a record and its rows in one transaction:

    user's partition      the change is noted, the address claimed              the user is as before
    address's partition   the claim is granted or refused, the user's partition is informed
    user's partition      granted: the user is changed, the claim confirmed, the former address released;
                          refused: the outcome is published
    address's partition   the former address is free, the user's partition is informed
    user's partition      the outcome is published

Meanwhile other writes of the same user wait, in their order. A step without an answer in time is repeated.
"""

from typing import Any, Final

import msgspec

from services.processor.applications.users import problems
from services.processor.applications.users.claims import EmailClaim, claimed, confirmed, released
from services.processor.applications.users.fields import email_key
from services.processor.applications.users.outcomes import LEDGER, OUTCOMES, PLACES, Outcome, Outcomes
from services.processor.applications.users.problems import RequestRefused
from services.processor.applications.users.routes import Stores, routes
from services.processor.applications.users.settings import UserRules
from services.processor.applications.users.user import UserRow, wanted
from services.processor.engine.application.application import Application, Context, Processor, Store, StoreSpec
from services.processor.engine.record import Record
from shared import codec, topics
from shared.codec import Undecodable
from shared.http.problems import Problem
from shared.schemas.user_command import (
    SCHEMA_VERSION,
    Claim,
    Claimed,
    Confirm,
    Create,
    Release,
    Released,
    UserCommand,
    Write,
)

#: Writes of one user that wait while an address is claimed or released.
WAITING_MAX: Final = 16


class Change(msgspec.Struct, array_like=True):
    """A write of a user that waits for the partition of an address."""

    #: The offset of its record; its claim has it as its number.
    number: int
    write: Write
    #: The request to that partition: its address and its claim.
    email: str
    claim: int
    #: The outcome of the write, published when the address is released; None while one is claimed.
    outcome: Outcome | None = None
    #: Later writes of the user with the offsets of their records.
    waiting: list[tuple[int, Write]] = []


USERS: Final = StoreSpec[UserRow](
    name="users", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(UserRow).decode
)
CHANGES: Final = StoreSpec[Change](
    name="changes", id=2, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(Change).decode
)
CLAIMS: Final = StoreSpec[EmailClaim](
    name="email_claims", id=3, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(EmailClaim).decode
)


class Users:
    """The processor of one partition: of users and of addresses."""

    def __init__(self, context: Context, rules: UserRules) -> None:
        self._context = context
        self._rules = rules
        self._users: Store[UserRow] = context.store(USERS)
        self._changes: Store[Change] = context.store(CHANGES)
        self._claims: Store[EmailClaim] = context.store(CLAIMS)
        self._outcomes = Outcomes(context, rules)

    def fold(self, record: Record) -> None:
        """Takes one command in."""
        key = record.key
        if record.value is None or key is None:
            raise Undecodable("the record has no key or no value")
        what = codec.USER_COMMAND.decode(record.value).what
        is_of_address = isinstance(what, Claim | Confirm | Release)
        if is_of_address != (b"@" in key):
            raise Undecodable("the key is not of the command's kind")
        if isinstance(what, Claim | Confirm | Release):
            self._on_address(key, what)
        elif isinstance(what, Claimed):
            self._on_claimed(key, what)
        elif isinstance(what, Released):
            self._on_released(key, what)
        else:
            self._on_write(key, record.offset, what)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        """An outcome's time is over; or a change has waited for long."""
        if spec is OUTCOMES:
            self._outcomes.forget(key)
            return
        change = self._changes.get(key)
        if change is not None:
            self._ask(key, change)
            self._note(key, change)

    # Addresses.

    def _on_address(self, email: bytes, what: Claim | Confirm | Release) -> None:
        before = self._claims.get(email)
        user, address = what.user_id.encode(), email.decode()
        if isinstance(what, Claim):
            after = claimed(before, what.user_id, what.number)
            self._send(user, Claimed(address, what.number, is_granted=after is not None))
            if after is not None:
                self._claims.put(email, after)
        elif isinstance(what, Confirm):
            after = confirmed(before, what.user_id, what.number)
            if after is not None:
                self._claims.put(email, after)
        else:
            after = released(before, what.user_id, what.number)
            if after is None:
                self._claims.delete(email)
            self._send(user, Released(address, what.number))

    # Users.

    def _on_write(self, key: bytes, number: int, write: Write) -> None:
        if self._outcomes.has_final(key, write.request):
            return
        change = self._changes.get(key)
        if change is None:
            self._work(key, [(number, write)])
            return
        if write.request.id in {change.write.request.id, *(one.request.id for _, one in change.waiting)}:
            return
        if len(change.waiting) >= WAITING_MAX:
            self._refuse(key, write, problems.busy(), is_final=False)
            return
        change.waiting.append((number, write))
        self._changes.put(key, change, self._changes.deadline_ms(key))

    def _on_claimed(self, key: bytes, answer: Claimed) -> None:
        change = self._changes.get(key)
        if change is None or change.outcome is not None or change.number != answer.number:
            if answer.is_granted:
                self._settle(key, answer)
            return
        if not answer.is_granted:
            self._refuse(key, change.write, problems.email_taken())
            self._work(key, change.waiting)
            return
        # Nothing has changed the user since it was decided that it may be changed so.
        after = wanted(self._users.get(key), key.decode(), change.write, self._context.clock_ms)
        assert after is not None
        after = msgspec.structs.replace(after, claim=answer.number)
        self._go_on(key, self._apply(key, change.number, change.write, after), change.waiting)

    def _on_released(self, key: bytes, answer: Released) -> None:
        change = self._changes.get(key)
        if change is None or change.outcome is None or (change.email, change.claim) != (answer.email, answer.number):
            return
        self._outcomes.put(key, change.write.request, change.outcome)
        self._work(key, change.waiting)

    def _work(self, key: bytes, waiting: list[tuple[int, Write]]) -> None:
        """Does the writes that wait, in order, until one has to wait for an address."""
        while waiting:
            (number, write), *waiting = waiting
            change = self._begin(key, number, write)
            if change is not None:
                change.waiting = waiting
                self._note(key, change)
                return
        if self._changes.get(key) is not None:
            self._changes.delete(key)

    def _go_on(self, key: bytes, change: Change | None, waiting: list[tuple[int, Write]]) -> None:
        if change is None:
            self._work(key, waiting)
        else:
            change.waiting = waiting
            self._note(key, change)

    def _begin(self, key: bytes, number: int, write: Write) -> Change | None:
        """Does a write, or as much of it as can be done before an address is claimed: then what it waits for."""
        before = self._users.get(key)
        try:
            after = wanted(before, key.decode(), write, self._context.clock_ms)
        except RequestRefused as refused:
            self._refuse(key, write, refused.problem)
            return None
        former = None if before is None else email_key(before.email)
        if after is None or email_key(after.email) == former:
            return self._apply(key, number, write, after)
        change = Change(number, write, email_key(after.email), claim=number)
        self._ask(key, change)
        return change

    def _apply(self, key: bytes, number: int, write: Write, after: UserRow | None) -> Change | None:
        """Changes the user; where that frees an address, the change that waits for it."""
        before, user_id = self._users.get(key), key.decode()
        if after is None:
            self._users.delete(key)
            self._context.emit(topics.USERS, key, None)
            outcome = Outcome(write.request.fingerprint, 204, b"")
        else:
            self._users.put(key, after)
            document = codec.USER.encode(after.to_api(user_id))
            self._context.emit(topics.USERS, key, document)
            status = 201 if isinstance(write, Create) else 200
            outcome = Outcome(write.request.fingerprint, status, document, after.version)
            if before is None or before.claim != after.claim:
                self._send(email_key(after.email).encode(), Confirm(user_id, after.claim))
        if before is None or (after is not None and before.claim == after.claim):
            self._outcomes.put(key, write.request, outcome)
            return None
        change = Change(number, write, email_key(before.email), before.claim, outcome)
        self._ask(key, change)
        return change

    def _settle(self, key: bytes, answer: Claimed) -> None:
        """A claim was granted that no write waits for any more: a step was repeated."""
        user = self._users.get(key)
        is_had = user is not None and (email_key(user.email), user.claim) == (answer.email, answer.number)
        settled = Confirm if is_had else Release
        self._send(answer.email.encode(), settled(key.decode(), answer.number))

    def _refuse(self, key: bytes, write: Write, problem: Problem, *, is_final: bool = True) -> None:
        request = write.request
        outcome = Outcome(
            request.fingerprint, problem.status, problem.encode(), is_final=is_final, submission=request.submission
        )
        self._outcomes.put(key, write.request, outcome)

    def _ask(self, key: bytes, change: Change) -> None:
        step = Claim if change.outcome is None else Release
        self._send(change.email.encode(), step(key.decode(), change.claim))

    def _note(self, key: bytes, change: Change) -> None:
        self._changes.put(key, change, self._context.clock_ms + self._rules.claim_retry_ms)

    def _send(self, key: bytes, what: Claim | Claimed | Confirm | Release | Released) -> None:
        value = codec.USER_COMMAND.encode(UserCommand(SCHEMA_VERSION, what))
        self._context.emit(topics.USER_COMMANDS, key, value, by_key=True)


def application(rules: UserRules) -> Application:
    """The application under these rules."""

    def start(context: Context) -> Processor:
        return Users(context, rules)

    served = routes(Stores(USERS, CLAIMS, OUTCOMES))
    return Application(
        name="users",
        inputs=(topics.USER_COMMANDS,),
        outputs=(topics.USERS, topics.USER_COMMANDS, topics.REJECTED),
        changelog=topics.USERS_CHANGELOG,
        stores=(USERS, CHANGES, CLAIMS, OUTCOMES, PLACES, LEDGER),
        start=start,
        cannot_grow="its state names the offsets in topic user_commands of the commands that it has answered",
        routes=served.routes,
        queries=served.queries,
    )
