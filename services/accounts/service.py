"""Accounts: what people and commands do with accounts, each in one transaction with its row of the audit log."""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

import psycopg

from services.accounts.core.credentials import ID_BYTES, SECRET_BYTES, Credential, Kind, new_credential
from services.accounts.core.login_throttle import Allowance
from services.accounts.core.passwords import PASSWORD_CHARS_MAX, check_password
from services.accounts.core.principal import Principal
from services.accounts.core.roles import Permission
from services.accounts.core.texts import checked_email, checked_name
from services.accounts.core.totp import CodeWrong
from services.accounts.credential_queue import AT_ONCE_MAX, CredentialQueue
from services.accounts.password_hashes import Passwords
from services.accounts.store import audit
from services.accounts.store.audit import Actor
from services.accounts.store.credentials import tokens
from services.accounts.store.logins import factors, links, sessions
from services.accounts.store.logins.links import AccountExists, Link, LinkSpent, Newcomer
from services.rim.database.pool import NotPublished, Postgres, PostgresAway, QueryRefused
from services.rim.turns.question_limits import InTurn

T = TypeVar("T")

#: Of an organisation's people and tokens together: half of the connections that there are at the least.
AT_ONCE_OF_ORGANISATION: Final = 2
#: With those that wait. A page opens with some five of them.
QUESTIONS_OF_ORGANISATION_MAX: Final = 100


class LoginWrong(ValueError):
    """Address and password do not belong together; which of them is wrong is not said."""


class CodeNeeded(ValueError):
    """The password is right, and the account has a second factor."""


class LoginsTooMany(ValueError):
    """Too many logins have failed; the argument is how many seconds to wait."""

    @property
    def seconds(self) -> float:
        """How long to wait."""
        return float(self.args[0])


class Accounts:
    """Belongs to one event loop. Everything that asks Postgres raises `PostgresAway`, `NotPublished` or `QueryRefused`."""

    def __init__(
        self,
        dsn: str,
        *,
        connections_max: int = 4,
        seconds_max: float = 5.0,
        passwords: Passwords | None = None,
        random: Callable[[int], bytes] = secrets.token_bytes,
        now_seconds: Callable[[], float] = time.time,
    ) -> None:
        self.dsn: Final = dsn
        pool = partial(Postgres, dsn, seconds_max=seconds_max, service="accounts", writes=True)
        self.postgres: Final = pool(connections_max=connections_max)
        #: Of what is asked before anything is known of the caller: no question of a caller takes its connections.
        self.lookups: Final = pool(connections_max=AT_ONCE_MAX)
        #: Of all questions over `lookups`.
        self.queue: Final = CredentialQueue()
        #: Of all that callers ask over `postgres`, by organisation.
        self.turns: Final = InTurn(at_once=AT_ONCE_OF_ORGANISATION, most=QUESTIONS_OF_ORGANISATION_MAX)
        self.passwords: Final = passwords or Passwords()
        self.random: Final = random
        self.now_seconds: Final = now_seconds

    async def open(self) -> None:
        """Starts the pools; does not wait for Postgres."""
        await self.postgres.open()
        await self.lookups.open()

    async def close(self) -> None:
        """Closes all connections."""
        await self.postgres.close()
        await self.lookups.close()

    async def ask_in_turn(self, address: str | None, read: Callable[[psycopg.AsyncConnection], Awaitable[T]]) -> T:
        """What `read` finds, in a turn of this address: for all that is asked before anything is known of the caller.

        A turn is of one question, so none is held while a password is hashed or a provider is asked. Raises `TooManyWaiting` too.
        """
        async with self.queue.turn(address):
            return await self.lookups.ask(read)

    def new(self, kind: Kind) -> Credential:
        """A new credential."""
        return new_credential(kind, self.random(ID_BYTES + SECRET_BYTES))

    async def log_in(self, email: str, password: str, *, address: str | None, agent: str, code: str = "") -> Credential:
        """A new session. Raises `LoginWrong`, `CodeNeeded`, `CodeWrong` or `LoginsTooMany`."""
        allowed = await self._counted(address, email)
        person = None
        if "\0" not in email:
            person = await self.ask_in_turn(address, partial(sessions.person_of, email=email))
        stored = person.password_hash if person is not None else None
        if len(password) > PASSWORD_CHARS_MAX or not await self.passwords.is_right(stored, password) or person is None:
            if person is not None:
                await self._note_failed(person, address, "password")
            raise LoginWrong
        if person.has_totp and not code:
            await self.ask_in_turn(address, partial(sessions.forgive_attempt, allowed=allowed))
            raise CodeNeeded
        credential = self.new(Kind.SESSION)
        actor = Actor("person", person.id, person.email, address, person.organisation_id)
        is_outdated = stored is not None and self.passwords.is_outdated(stored)
        rehashed = await self.passwords.hash(password) if is_outdated else None

        async def begin(connection: psycopg.AsyncConnection) -> None:
            factor = await factors.check_code(connection, person.id, code, self.now_seconds())
            await sessions.forgive_attempt(connection, allowed)
            if rehashed is not None:
                await sessions.rehash(connection, person, rehashed)
            await self.open_session(connection, credential, (person.id, person.organisation_id), address, agent)
            await audit.add(connection, actor, "logged_in", details={"by": "password", "second_factor": factor})

        try:
            await self.ask_in_turn(address, begin)
        except CodeWrong:
            # It stays counted: codes are few.
            await self._note_failed(person, address, "code")
            raise
        return credential

    async def log_out(self, credential: Credential, actor: Actor) -> None:
        """Ends one session."""
        await self.postgres.ask(partial(sessions.end_session, credential=credential, actor=actor))

    async def log_out_everywhere(self, person_id: str, actor: Actor) -> int:
        """Ends all sessions of a person; how many."""
        return await self.postgres.ask(partial(sessions.end_all_sessions, person_id=person_id, actor=actor))

    async def new_owner_link(self) -> Credential | None:
        """A link that makes the first owner; None if any account exists."""
        credential = self.new(Kind.LINK)

        async def add(connection: psycopg.AsyncConnection) -> bool:
            if await links.has_people(connection):
                return False
            await links.add_link(connection, credential, "first_owner", links.FIRST_OWNER_FOR)
            return True

        return credential if await self.postgres.ask(add) else None

    async def new_login_link(self, email: str, actor: Actor, *, begins_again: bool = False) -> Credential | None:
        """A link that logs this person in, once; None if there is no such person.

        With `begins_again` it is the only way in: password, second factor, sessions and logins at the provider end. Who
        follows the link sets a password without a present one.
        """
        credential = self.new(Kind.LINK)

        async def add(connection: psycopg.AsyncConnection) -> bool:
            person = await sessions.person_of(connection, email)
            if person is None:
                return False
            if begins_again:
                await factors.begin_again(connection, person.id, None)
                await links.end_logins(connection, person.id)
            await links.add_link(
                connection,
                credential,
                "login",
                links.LOGIN_FOR,
                person_id=person.id,
                organisation_id=person.organisation_id,
                email=person.email,
            )
            action = "began_account_again" if begins_again else "made_login_link"
            await audit.add(connection, actor, action, person.email, organisation_id=person.organisation_id)
            return True

        return credential if await self.postgres.ask(add) else None

    async def link(self, credential: Credential, *, address: str | None) -> Link:
        """The purpose of a link. Raises `LinkSpent`."""
        return await self.ask_in_turn(address, partial(links.find_link, credential=credential))

    async def log_in_by_link(self, credential: Credential, *, address: str | None, agent: str) -> Credential:
        """A new session, for a link of kind `login`. Raises `LinkSpent`."""
        session = self.new(Kind.SESSION)

        async def begin(connection: psycopg.AsyncConnection) -> None:
            whose = await links.log_in_by_link(connection, credential, address)
            await self.open_session(connection, session, whose, address, agent)

        await self.ask_in_turn(address, begin)
        return session

    async def accept(
        self,
        credential: Credential,
        *,
        email: str,
        name: str,
        password: str,
        organisation: str,
        address: str | None,
        agent: str,
    ) -> Credential | None:
        """Makes the person that a link is for, and logs in.

        None where the person has an account, whose password this must be, and is to log in. Raises `LinkSpent`, `TextWrong`,
        `PasswordWeak`, `AccountExists` or `LoginsTooMany`.
        """
        link = await self.link(credential, address=address)
        if link.kind == "login":
            raise LinkSpent
        is_first = link.kind == "first_owner"
        wanted = checked_email(email if is_first else link.email or "")
        # Before it is known whether there is an account: else a short one asks whether an address has an account.
        check_password(password, email=wanted)
        person = None if is_first else await self.ask_in_turn(address, partial(sessions.person_of, email=wanted))
        if person is not None and not await self.is_password(
            person.password_hash, password, email=wanted, address=address
        ):
            await self._note_failed(person, address, "invitation")
            raise AccountExists
        newcomer = Newcomer(
            email=wanted,
            name=checked_name(name or wanted, "a name"),
            password_hash=await self.passwords.hash(password) if person is None else None,
            organisation=checked_name(organisation, "an organisation's name") if is_first else "",
        )
        session = self.new(Kind.SESSION)

        async def make(connection: psycopg.AsyncConnection) -> bool:
            confirmed = None if person is None else person.id
            whose = await links.accept(connection, credential, newcomer, address, confirmed=confirmed)
            if person is None:
                await self.open_session(connection, session, whose, address, agent)
            return person is None

        return session if await self.ask_in_turn(address, make) else None

    async def new_token(
        self,
        actor: Actor,
        *,
        organisation_id: str,
        name: str,
        scopes: frozenset[Permission],
        customers: Sequence[str] | None = None,
        valid_for: timedelta | None = None,
        ends_by: datetime | None = None,
    ) -> Credential:
        """A new API token of an organisation; `ends_by` is the end of the token that makes it.

        Raises `TextWrong`, `TooManyTokens` or `EndTooLate`.
        """
        credential = self.new(Kind.TOKEN)
        add = partial(
            tokens.add_token,
            credential=credential,
            actor=actor,
            organisation_id=organisation_id,
            name=checked_name(name, "a token's name"),
            scopes=scopes,
            customers=customers,
            valid_for=valid_for,
            ends_by=ends_by,
        )
        await self.postgres.ask(add)
        return credential

    async def tokens(
        self, principal: Principal, *, after: str = "", rows_max: int = tokens.TOKENS_MAX
    ) -> list[tokens.Token]:
        """The tokens of the principal's organisation."""
        read = partial(tokens.tokens_of, organisation_id=principal.organisation_id, after=after, rows_max=rows_max)
        return await self.postgres.ask(read)

    async def revoke_token(self, token_id: str, actor: Actor, *, organisation_id: str) -> bool:
        """Revokes a token; False if the organisation has none such."""
        revoke = partial(tokens.revoke_token, token_id=token_id, actor=actor, organisation_id=organisation_id)
        return await self.postgres.ask(revoke)

    async def note(self, actor: Actor, action: str, target: str, details: Mapping[str, Any] | None = None) -> None:
        """Adds a row to the audit log for what changes nothing: an export, a look at a single viewer."""
        await self.postgres.ask(partial(audit.add, actor=actor, action=action, target=target, details=details))

    async def clean(self) -> None:
        """Deletes what is over. A table for which that fails keeps no other from it; raises its error then."""
        failed: Exception | None = None
        for table in sessions.OVER:
            try:
                while await self.postgres.ask(partial(sessions.clean, table=table)):
                    pass
            except (PostgresAway, NotPublished, QueryRefused) as error:
                failed = error
        if failed is not None:
            raise failed

    async def is_password(self, stored: str | None, password: str, *, email: str, address: str | None) -> bool:
        """Whether it is the password of this address; counted as logins are. Raises `LoginsTooMany`."""
        allowed = await self._counted(address, email)
        if len(password) > PASSWORD_CHARS_MAX or not await self.passwords.is_right(stored, password):
            return False
        await self.ask_in_turn(address, partial(sessions.forgive_attempt, allowed=allowed))
        return True

    async def _counted(self, address: str | None, email: str) -> list[Allowance]:
        """Counts a login before it is tried; under which keys. Raises `LoginsTooMany`."""
        count = partial(sessions.count_login, address=address, email=email)
        allowed, wait_seconds = await self.ask_in_turn(address, count)
        if wait_seconds > 0:
            raise LoginsTooMany(wait_seconds)
        return allowed

    async def _note_failed(self, person: sessions.Person, address: str | None, by: str) -> None:
        actor = Actor("nobody", None, person.email, address, person.organisation_id)
        note = partial(audit.add, actor=actor, action="login_failed", target=person.email, details={"by": by})
        await self.ask_in_turn(address, note)

    async def open_session(
        self,
        connection: psycopg.AsyncConnection,
        credential: Credential,
        whose: tuple[str, str],
        address: str | None,
        agent: str,
    ) -> None:
        """Begins a session of a person in an organisation, in the transaction that lets it in."""
        shown = "".join(one for one in agent if one.isprintable()).encode(errors="replace").decode()
        await sessions.open_session(
            connection,
            credential,
            person_id=whose[0],
            organisation_id=whose[1],
            address=address,
            agent=shown,
        )
