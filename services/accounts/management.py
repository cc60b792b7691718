"""Management: what admins do with people, invitations, organisations and customers; each in one transaction with its audit row."""

import base64
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import psycopg

from services.accounts.core.credentials import Credential, Kind
from services.accounts.core.principal import Principal
from services.accounts.core.roles import Permission, Role, given_by_token, may_give
from services.accounts.core.texts import checked_email, checked_name
from services.accounts.service import Accounts
from services.accounts.store import audit
from services.accounts.store.audit import Actor, AuditRow
from services.accounts.store.tenants import invitations, members, organisations
from services.accounts.store.tenants.invitations import Invitation
from services.accounts.store.tenants.members import Member, Outlived
from services.accounts.store.tenants.organisations import Organisation, OwnedCustomer

#: Of the id of a customer that the product names: nobody guesses it, so no data lies under it yet.
CUSTOMER_ID_BYTES: Final = 10
#: Rows of the audit log that are read at a time.
AUDIT_ROWS_AT_ONCE: Final = 500


def taker_of(principal: Principal) -> Role:
    """The role with which a principal takes roles away: a token with scope `manage` counts as an admin."""
    return principal.role or (Role.ADMIN if principal.may(Permission.MANAGE) else Role.VIEWER)


def given_by(principal: Principal) -> frozenset[Role]:
    """The roles that a principal may give."""
    if principal.role is None:
        return given_by_token(principal.permissions, has_end=principal.ends_at is not None)
    return frozenset(role for role in Role if may_give(principal.role, role))


class Management:
    """Belongs to one event loop. Everything raises what asks of `Postgres` raise, besides what its docstring says."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._ask = accounts.postgres.ask

    async def people(self, principal: Principal, *, after: str, rows_max: int) -> list[Member]:
        """The members of the asker's organisation."""
        read = partial(members.members_of, organisation_id=principal.organisation_id, after=after, rows_max=rows_max)
        return await self._ask(read)

    async def set_role(self, principal: Principal, person_id: str, role: Role, actor: Actor) -> Outlived:
        """Gives a member another role; what ended with the former one. Raises `MemberUnknown` or `RoleRefused`."""
        change = partial(
            members.set_role,
            person_id=person_id,
            role=role,
            actor=actor,
            taker=taker_of(principal),
            gives=given_by(principal),
            organisation_id=principal.organisation_id,
        )
        return await self._ask(change)

    async def remove(self, principal: Principal, person_id: str, actor: Actor) -> Outlived:
        """Takes a member out of the organisation; what ended with it. Raises `MemberUnknown` or `RoleRefused`."""
        taker, organisation_id = taker_of(principal), principal.organisation_id
        end = partial(members.remove, person_id=person_id, actor=actor, taker=taker, organisation_id=organisation_id)
        return await self._ask(end)

    async def end_sessions(self, principal: Principal, person_id: str, actor: Actor) -> int:
        """Ends a member's sessions here; how many. Raises `MemberUnknown` or `RoleRefused`."""
        taker, organisation_id = taker_of(principal), principal.organisation_id
        end = partial(
            members.end_sessions, person_id=person_id, actor=actor, taker=taker, organisation_id=organisation_id
        )
        return await self._ask(end)

    async def invite(
        self, organisation_id: str, email: str, role: Role, valid_for: timedelta, actor: Actor
    ) -> tuple[Credential, datetime]:
        """A link into an organisation, and until when it holds.

        Raises `TextWrong`, `MemberAlready` or `TooManyInvitations`.
        """
        credential = self._accounts.new(Kind.LINK)
        add = partial(
            invitations.invite,
            credential=credential,
            actor=actor,
            organisation_id=organisation_id,
            email=checked_email(email),
            role=role,
            valid_for=valid_for,
        )
        return credential, await self._ask(add)

    async def invitations(self, principal: Principal, *, after: str, rows_max: int) -> list[Invitation]:
        """The open invitations of the asker's organisation."""
        read = partial(
            invitations.invitations_of, organisation_id=principal.organisation_id, after=after, rows_max=rows_max
        )
        return await self._ask(read)

    async def withdraw(self, principal: Principal, invitation_id: str, actor: Actor) -> bool:
        """From now on the link opens nothing; False if there is no such open invitation."""
        end = partial(
            invitations.withdraw,
            invitation_id=invitation_id,
            actor=actor,
            organisation_id=principal.organisation_id,
        )
        return await self._ask(end)

    async def organisations(self, principal: Principal, *, after: str, rows_max: int) -> list[Organisation]:
        """The asker's organisations; for those who run the installation all."""
        read = partial(
            organisations.organisations,
            organisation_id=principal.organisation_id,
            person_id=principal.id if principal.kind == "person" else None,
            all_of_them=principal.operates,
            after=after,
            rows_max=rows_max,
        )
        return await self._ask(read)

    async def add_organisation(
        self, name: str, owner: str, valid_for: timedelta, actor: Actor
    ) -> tuple[str, Credential, datetime]:
        """A new organisation, and the invitation of its first owner. Raises `TextWrong`."""
        wanted, email = checked_name(name, "an organisation's name"), checked_email(owner)
        credential = self._accounts.new(Kind.LINK)

        async def make(connection: psycopg.AsyncConnection) -> tuple[str, Credential, datetime]:
            made = await organisations.add_organisation(connection, wanted, actor)
            until = await invitations.invite(
                connection,
                credential,
                actor,
                organisation_id=made,
                email=email,
                role=Role.OWNER,
                valid_for=valid_for,
            )
            return made, credential, until

        return await self._ask(make)

    async def invite_owner(
        self, organisation_id: str, owner: str, valid_for: timedelta, actor: Actor
    ) -> tuple[Credential, datetime]:
        """Another link for the first owner of an organisation that nobody has joined; earlier ones end.

        Raises `TextWrong`, `OrganisationUnknown` or `OrganisationHasPeople`.
        """
        email, credential = checked_email(owner), self._accounts.new(Kind.LINK)

        async def make(connection: psycopg.AsyncConnection) -> tuple[Credential, datetime]:
            await organisations.check_empty(connection, organisation_id)
            await invitations.withdraw_all(connection, actor, organisation_id=organisation_id)
            until = await invitations.invite(
                connection,
                credential,
                actor,
                organisation_id=organisation_id,
                email=email,
                role=Role.OWNER,
                valid_for=valid_for,
            )
            return credential, until

        return await self._ask(make)

    async def rename(self, organisation_id: str, name: str, actor: Actor) -> None:
        """Gives an organisation another name. Raises `TextWrong` or `OrganisationUnknown`."""
        wanted = checked_name(name, "an organisation's name")
        change = partial(organisations.rename, organisation_id=organisation_id, name=wanted, actor=actor)
        await self._ask(change)

    async def enter(self, session: Credential, organisation_id: str, actor: Actor) -> None:
        """The session continues in another organisation of its person. Raises `OrganisationUnknown`."""
        change = partial(organisations.switch, session_id=session.id, organisation_id=organisation_id, actor=actor)
        await self._ask(change)

    async def leave(self, organisation_id: str, actor: Actor) -> None:
        """The person is in this organisation no longer. Raises `OrganisationUnknown` or `RoleRefused`."""
        await self._ask(partial(members.leave, organisation_id=organisation_id, actor=actor))

    async def customers(
        self, principal: Principal, *, owned_by: str = "", after: str, rows_max: int
    ) -> list[OwnedCustomer]:
        """The listed customers of the caller's organisation; for people who run the installation all of them.

        For a token for some customers, these alone. With `owned_by`, those that this organisation owns.
        """
        read = partial(
            organisations.customers,
            organisation_id=principal.organisation_id,
            all_of_them=principal.operates,
            owned_by=owned_by,
            # Within the statement: a page that is cut afterwards says in its cursor what the caller may not see.
            among=None if principal.scope.is_whole else principal.scope.own,
            after=after,
            rows_max=rows_max,
        )
        return await self._ask(read)

    async def add_customer(
        self, principal: Principal, customer_id: str | None, name: str, organisation_id: str | None, actor: Actor
    ) -> OwnedCustomer:
        """A new customer. Only those who run the installation name its id and another organisation: data may lie under an id.

        Raises `TextWrong`, `CustomerTaken`, `OrganisationUnknown` or `PermissionError`.
        """
        owner_id = organisation_id or principal.organisation_id
        if not principal.operates and (customer_id is not None or owner_id != principal.organisation_id):
            raise PermissionError("who runs the installation names ids and owners of customers")
        wanted = checked_name(name, "a customer's name") if name or customer_id is None else ""
        made_id = customer_id or self._new_customer_id()
        add = partial(
            organisations.add_customer, customer_id=made_id, name=wanted, actor=actor, organisation_id=owner_id
        )
        return OwnedCustomer(made_id, wanted, owner_id, await self._ask(add))

    async def change_customer(
        self, principal: Principal, customer_id: str, name: str | None, organisation_id: str | None, actor: Actor
    ) -> OwnedCustomer:
        """Renames a customer, or gives it to another organisation, which only those who run the installation do.

        Those give what is not listed, too: it belongs to their organisation until then.
        Raises `TextWrong`, `CustomerUnknown`, `OrganisationUnknown`, `DeletionUnderWay` or `PermissionError`.
        """
        if organisation_id is not None and not principal.operates:
            raise PermissionError("who runs the installation says whose a customer is")
        change = partial(
            organisations.change_customer,
            customer_id=customer_id,
            actor=actor,
            owner_id=None if principal.operates else principal.organisation_id,
            name=None if name is None else checked_name(name, "a customer's name"),
            new_owner_id=organisation_id,
        )
        return await self._ask(change)

    async def audit(
        self, principal: Principal, *, before_id: int, rows_max: int, action: str = "", actor: str = ""
    ) -> list[AuditRow]:
        """The audit log of the asker's organisation, the newest rows first; of one action or actor, where one is named."""
        read = partial(
            audit.newest,
            organisation_id=principal.organisation_id,
            before_id=before_id,
            rows_max=rows_max,
            action=action,
            actor=actor,
        )
        return await self._ask(read)

    async def whole_audit(self, principal: Principal) -> AsyncIterator[list[AuditRow]]:
        """All of it, the newest rows first, some at a time, each a question in its organisation's turn.

        Raises `TooManyQuestions`.
        """
        before_id = audit.NEWEST
        while True:
            async with self._accounts.turns.of(principal.organisation_id):
                rows = await self.audit(principal, before_id=before_id, rows_max=AUDIT_ROWS_AT_ONCE)
            if not rows:
                return
            yield rows
            before_id = rows[-1].id

    def _new_customer_id(self) -> str:
        random = self._accounts.random(CUSTOMER_ID_BYTES)
        return "env_" + base64.b32encode(random).decode().lower()
