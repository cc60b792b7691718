"""`/v1/tokens`: API tokens of the asker's organisation."""

from datetime import timedelta
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from services.accounts.core.roles import Permission, token_scopes
from services.accounts.http.access import MANAGEMENT, TEAM_MANAGEMENT
from services.accounts.http.problems import forbidden, unknown
from services.accounts.http.v1.operations import DAYS_MAX, Call, Done, Operation, PageAsked, ms, ms_or_none
from services.accounts.http.v1.tenants import CustomerId, Name
from services.accounts.service import Accounts
from services.accounts.store.credentials.tokens import EndTooLate, Token


class OneToken(msgspec.Struct, frozen=True):
    """A token without its secret. `customers` null: all of the organisation. `used_ms`: to the minute."""

    id: str
    name: str
    scopes: list[Permission]
    customers: list[str] | None
    made_by: str
    created_ms: int
    expires_ms: int | None
    revoked_ms: int | None
    used_ms: int | None


class Tokens(msgspec.Struct, frozen=True):
    """A page of tokens; those that were revoked are listed for 30 days."""

    tokens: list[OneToken]
    next: str | None


class NewToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new token. Without `days`, or with null: until it is revoked.

    A token makes none that ends later than itself: without `days` both end together; a later end, or null, is refused.
    """

    name: Name
    scopes: Annotated[list[str], msgspec.Meta(min_length=1, max_length=8)]
    customers: Annotated[list[CustomerId], msgspec.Meta(max_length=1_000)] | None = None
    days: Annotated[int, msgspec.Meta(ge=1, le=DAYS_MAX)] | UnsetType | None = UNSET


class MadeToken(msgspec.Struct, frozen=True):
    """A token. Its text is in this answer and nowhere else."""

    id: str
    token: str


class TokenOperations:
    """The operations."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def operations(self) -> list[Operation]:
        """All of them."""
        return [
            Operation("get", "/v1/tokens", "API tokens", TEAM_MANAGEMENT, self.tokens, Tokens, query=PageAsked),
            Operation(
                "post",
                "/v1/tokens",
                "Makes an API token",
                MANAGEMENT,
                self.make,
                MadeToken,
                body=NewToken,
                status=201,
                can_conflict=True,
            ),
            Operation("delete", "/v1/tokens/{id}", "Revokes it", TEAM_MANAGEMENT, self.revoke),
        ]

    async def tokens(self, call: Call) -> Tokens:
        """By id."""
        asked = call.page
        rows = await self._accounts.tokens(call.principal, after=asked.after, rows_max=asked.rows_max)
        page, after = asked.cut(rows, lambda row: row.id)
        return Tokens([_token(row) for row in page], after)

    async def make(self, call: Call) -> MadeToken:
        """A token makes none that may do or see more than itself, or that ends later."""
        principal, wanted = call.principal, call.body
        scopes = token_scopes(wanted.scopes)
        if principal.kind == "token" and not scopes <= principal.permissions:
            raise forbidden("a token makes no token that may do more")
        if wanted.customers is not None and not all(principal.scope.has(one) for one in wanted.customers):
            raise unknown("customer")
        if wanted.customers is None and not principal.scope.is_whole:
            raise forbidden("a token for some customers makes no token for all")
        if wanted.days is None and principal.ends_at is not None:
            raise EndTooLate
        made = await self._accounts.new_token(
            call.actor,
            organisation_id=principal.organisation_id,
            name=wanted.name,
            scopes=scopes,
            customers=wanted.customers,
            valid_for=timedelta(days=wanted.days) if isinstance(wanted.days, int) else None,
            ends_by=principal.ends_at,
        )
        return MadeToken(made.id, made.text)

    async def revoke(self, call: Call) -> Done:
        """It opens nothing from now on."""
        was_there = await self._accounts.revoke_token(
            call.parts["id"], call.actor, organisation_id=call.principal.organisation_id
        )
        if not was_there:
            raise unknown("token")
        return Done()


def _token(row: Token) -> OneToken:
    return OneToken(
        row.id,
        row.name,
        [Permission(scope) for scope in row.scopes],
        row.customers,
        row.made_by,
        ms(row.created_at),
        ms_or_none(row.expires_at),
        ms_or_none(row.revoked_at),
        ms_or_none(row.used_at),
    )
