"""`/v1/people`, `/v1/invitations`: the members of the caller's organisation, and invitations to it."""

from datetime import timedelta
from typing import Annotated

import msgspec

from services.accounts.core.principal import Principal
from services.accounts.core.roles import Role
from services.accounts.http.access import TEAM, TEAM_MANAGEMENT
from services.accounts.http.problems import forbidden, unknown
from services.accounts.http.v1.operations import Call, Done, Operation, PageAsked, ms, ms_or_none
from services.accounts.management import Management, given_by
from services.accounts.store.tenants.members import Member

INVITATION_DAYS_MAX = 30


class Person(msgspec.Struct, frozen=True):
    """A member of the organisation. `seen_ms`: the last request of a session that is open."""

    id: str
    email: str
    name: str
    role: Role
    joined_ms: int
    seen_ms: int | None
    has_password: bool
    has_second_factor: bool
    has_external_login: bool


class People(msgspec.Struct, frozen=True):
    """A page of people; `next` is the cursor of the one behind it."""

    people: list[Person]
    next: str | None


class RoleChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another role."""

    role: Role


class NewInvitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom to invite, as what, for how many days."""

    email: Annotated[str, msgspec.Meta(max_length=254)]
    role: Role
    days: Annotated[int, msgspec.Meta(ge=1, le=INVITATION_DAYS_MAX)] = 7


class MadeInvitation(msgspec.Struct, frozen=True):
    """An invitation. Its link is in this answer and nowhere else."""

    id: str
    link: str
    expires_ms: int


class OpenInvitation(msgspec.Struct, frozen=True):
    """An invitation that is still open."""

    id: str
    email: str
    role: Role
    made_by: str
    created_ms: int
    expires_ms: int


class Invitations(msgspec.Struct, frozen=True):
    """A page of invitations."""

    invitations: list[OpenInvitation]
    next: str | None


class Ended(msgspec.Struct, frozen=True):
    """How many sessions were ended."""

    sessions: int


class EndedToo(msgspec.Struct, frozen=True):
    """How many tokens and open invitations of the person ended, since the person may no longer make such."""

    tokens: int
    invitations: int


class PeopleOperations:
    """The operations. `page_url` is where browsers reach the page."""

    def __init__(self, management: Management, page_url: str) -> None:
        self._management = management
        self._page_url = page_url

    def operations(self) -> list[Operation]:
        """All of them."""
        return [
            Operation("get", "/v1/people", "Members", TEAM, self.people, People, query=PageAsked),
            Operation(
                "patch",
                "/v1/people/{id}",
                "Another role; tokens and invitations that the person may no longer make end",
                TEAM_MANAGEMENT,
                self.change,
                EndedToo,
                body=RoleChange,
            ),
            Operation(
                "delete",
                "/v1/people/{id}",
                "Removes a member, with the tokens and invitations that the person made",
                TEAM_MANAGEMENT,
                self.remove,
                EndedToo,
            ),
            Operation(
                "post",
                "/v1/people/{id}/end-sessions",
                "Logs a member out everywhere",
                TEAM_MANAGEMENT,
                self.end_sessions,
                Ended,
            ),
            Operation(
                "get",
                "/v1/invitations",
                "Open invitations",
                TEAM_MANAGEMENT,
                self.invitations,
                Invitations,
                query=PageAsked,
            ),
            Operation(
                "post",
                "/v1/invitations",
                "Invites somebody; one that is open for the same address ends",
                TEAM_MANAGEMENT,
                self.invite,
                MadeInvitation,
                body=NewInvitation,
                status=201,
                can_conflict=True,
            ),
            Operation("delete", "/v1/invitations/{id}", "Withdraws it", TEAM_MANAGEMENT, self.withdraw),
        ]

    async def people(self, call: Call) -> People:
        """By address."""
        asked = call.page
        rows = await self._management.people(call.principal, after=asked.after, rows_max=asked.rows_max)
        page, after = asked.cut(rows, lambda row: row.email)
        return People([_person(row) for row in page], after)

    async def change(self, call: Call) -> EndedToo:
        """In force at once."""
        ended = await self._management.set_role(call.principal, call.parts["id"], call.body.role, call.actor)
        return EndedToo(ended.tokens, ended.invitations)

    async def remove(self, call: Call) -> EndedToo:
        """The person's sessions in this organisation end."""
        ended = await self._management.remove(call.principal, call.parts["id"], call.actor)
        return EndedToo(ended.tokens, ended.invitations)

    async def end_sessions(self, call: Call) -> Ended:
        """Ends the sessions of a member in this organisation."""
        ended = await self._management.end_sessions(call.principal, call.parts["id"], call.actor)
        return Ended(ended)

    async def invitations(self, call: Call) -> Invitations:
        """By id."""
        asked = call.page
        rows = await self._management.invitations(call.principal, after=asked.after, rows_max=asked.rows_max)
        page, after = asked.cut(rows, lambda row: row.id)
        listed = [
            OpenInvitation(row.id, row.email, Role(row.role), row.made_by, ms(row.created_at), ms(row.expires_at))
            for row in page
        ]
        return Invitations(listed, after)

    async def invite(self, call: Call) -> MadeInvitation:
        """The link is to be sent by who invites: Playhead sends no mail for it."""
        check_invites(call.principal)
        wanted: NewInvitation = call.body
        if wanted.role not in given_by(call.principal):
            raise forbidden(f"who asks may invite nobody as {wanted.role}")
        link, until = await self._management.invite(
            call.principal.organisation_id, wanted.email, wanted.role, timedelta(days=wanted.days), call.actor
        )
        return MadeInvitation(link.id, link_address(self._page_url, link.text), ms(until))

    async def withdraw(self, call: Call) -> Done:
        """The link opens nothing from now on."""
        if not await self._management.withdraw(call.principal, call.parts["id"], call.actor):
            raise unknown("invitation")
        return Done()


def check_invites(principal: Principal) -> None:
    """Raises `Refused` for a token with an end: who follows an invitation has none."""
    if principal.ends_at is not None:
        raise forbidden("a token that ends invites nobody: a login would outlast it")


def link_address(page_url: str, text: str) -> str:
    """The address at which a person follows a link. The part behind `#` is never sent by the browser, and is in no log."""
    return f"{page_url}/login#{text}"


def _person(row: Member) -> Person:
    return Person(
        row.id,
        row.email,
        row.name,
        Role(row.role),
        ms(row.joined_at),
        ms_or_none(row.seen_at),
        row.has_password,
        row.has_totp,
        row.has_external,
    )
