"""`/v1/organisations`, `/v1/customers`: who owns which customers (environments)."""

from datetime import timedelta
from typing import Annotated

import msgspec

from services.accounts.core.principal import Principal
from services.accounts.http.access import ACCOUNT, INSTALLATION, MANAGEMENT, METRICS, OWNERS
from services.accounts.http.problems import forbidden, unknown
from services.accounts.http.v1.operations import Call, Done, Operation, PageAsked, ms
from services.accounts.http.v1.people import INVITATION_DAYS_MAX, MadeInvitation, check_invites, link_address
from services.accounts.management import Management
from services.accounts.store.tenants.organisations import OwnedCustomer
from shared.http.patterns import whole
from shared.schemas.beacon import CUSTOMER_ID

CustomerId = Annotated[str, msgspec.Meta(pattern=whole(CUSTOMER_ID.pattern))]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class OneOrganisation(msgspec.Struct, frozen=True):
    """An organisation. `customers` counts the listed ones: the organisation that runs the installation owns all others too.

    `is_member`: whether the asker is a person in it, and may enter it.
    """

    id: str
    name: str
    runs_installation: bool
    created_ms: int
    people: int
    customers: int
    is_member: bool


class Organisations(msgspec.Struct, frozen=True):
    """A page of organisations."""

    organisations: list[OneOrganisation]
    next: str | None


class NewOrganisation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An organisation, and whom to invite as its first owner."""

    name: Name
    owner: Annotated[str, msgspec.Meta(max_length=254)]
    days: Annotated[int, msgspec.Meta(ge=1, le=INVITATION_DAYS_MAX)] = 7


class MadeOrganisation(msgspec.Struct, frozen=True):
    """The organisation, and its first owner's link, which is in this answer and nowhere else."""

    id: str
    link: str
    expires_ms: int


class NewOwner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom to invite as the first owner of an organisation that nobody has joined."""

    email: Annotated[str, msgspec.Meta(max_length=254)]
    days: Annotated[int, msgspec.Meta(ge=1, le=INVITATION_DAYS_MAX)] = 7


class Renamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another name."""

    name: Name


class Customer(msgspec.Struct, frozen=True):
    """A customer (an environment) that is listed."""

    id: str
    name: str
    organisation_id: str
    created_ms: int


class Customers(msgspec.Struct, frozen=True):
    """A page of customers."""

    customers: list[Customer]
    next: str | None


class CustomersAsked(PageAsked, frozen=True, forbid_unknown_fields=True):
    """Which page of customers; with `organisation_id`, of those that this organisation owns."""

    organisation_id: Annotated[str, msgspec.Meta(max_length=64)] = ""


class NewCustomer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new customer.

    Only people who run the installation may name `id` and `organisation_id`, because data may exist under an id.
    """

    name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    id: CustomerId | None = None
    organisation_id: str | None = None


class CustomerChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another name, or another owner.

    Only people who run the installation may name `organisation_id`. They may give a customer that is not listed, too.
    """

    name: Name | None = None
    organisation_id: str | None = None


class TenantOperations:
    """The operations."""

    def __init__(self, management: Management, page_url: str) -> None:
        self._management = management
        self._page_url = page_url

    def operations(self) -> list[Operation]:
        """All of them."""
        return [
            Operation(
                "get",
                "/v1/organisations",
                "Organisations of the asker; of who runs the installation all",
                ACCOUNT,
                self.organisations,
                Organisations,
                query=PageAsked,
            ),
            Operation(
                "post",
                "/v1/organisations",
                "Makes an organisation and invites its first owner",
                INSTALLATION,
                self.make_organisation,
                MadeOrganisation,
                body=NewOrganisation,
                status=201,
            ),
            Operation(
                "patch",
                "/v1/organisations/{id}",
                "Renames it",
                OWNERS,
                self.rename,
                body=Renamed,
            ),
            Operation(
                "post",
                "/v1/organisations/{id}/invitations",
                "Invites its first owner again, while nobody has joined; earlier invitations end",
                INSTALLATION,
                self.invite_owner,
                MadeInvitation,
                body=NewOwner,
                status=201,
                can_conflict=True,
            ),
            Operation(
                "post",
                "/v1/organisations/{id}/enter",
                "The session goes on in this organisation",
                ACCOUNT,
                self.enter,
            ),
            Operation(
                "post",
                "/v1/organisations/{id}/leave",
                "Leaves it, with the tokens and invitations that the person made; sessions in it end",
                ACCOUNT,
                self.leave,
            ),
            Operation(
                "get",
                "/v1/customers",
                "Listed customers (environments)",
                METRICS,
                self.customers,
                Customers,
                query=CustomersAsked,
            ),
            Operation(
                "post",
                "/v1/customers",
                "Makes a customer",
                MANAGEMENT,
                self.make_customer,
                Customer,
                body=NewCustomer,
                status=201,
                can_conflict=True,
            ),
            Operation(
                "patch",
                "/v1/customers/{id}",
                "Renames a customer, or gives it to another organisation",
                MANAGEMENT,
                self.change_customer,
                Customer,
                body=CustomerChange,
                can_conflict=True,
            ),
        ]

    async def organisations(self, call: Call) -> Organisations:
        """By id."""
        asked = call.page
        rows = await self._management.organisations(call.principal, after=asked.after, rows_max=asked.rows_max)
        page, after = asked.cut(rows, lambda row: row.id)
        listed = [
            OneOrganisation(
                row.id, row.name, row.runs_installation, ms(row.created_at), row.people, row.customers, row.is_member
            )
            for row in page
        ]
        return Organisations(listed, after)

    async def make_organisation(self, call: Call) -> MadeOrganisation:
        """It has no people until its owner follows the link."""
        check_invites(call.principal)
        wanted: NewOrganisation = call.body
        made, link, until = await self._management.add_organisation(
            wanted.name, wanted.owner, timedelta(days=wanted.days), call.actor
        )
        return MadeOrganisation(made, link_address(self._page_url, link.text), ms(until))

    async def invite_owner(self, call: Call) -> MadeInvitation:
        """Where the link was lost, or the address was wrong."""
        check_invites(call.principal)
        wanted: NewOwner = call.body
        link, until = await self._management.invite_owner(
            call.parts["id"], wanted.email, timedelta(days=wanted.days), call.actor
        )
        return MadeInvitation(link.id, link_address(self._page_url, link.text), ms(until))

    async def rename(self, call: Call) -> Done:
        """Renames the caller's organisation; people who run the installation may rename any."""
        if call.parts["id"] != call.principal.organisation_id and not call.principal.operates:
            raise unknown("organisation")
        await self._management.rename(call.parts["id"], call.body.name, call.actor)
        return Done()

    async def enter(self, call: Call) -> Done:
        """For people who are members of several."""
        _check_person(call.principal)
        await self._management.enter(call.credential, call.parts["id"], call.actor)
        return Done()

    async def leave(self, call: Call) -> Done:
        """Nobody else can take a person out of an organisation that it never wanted to be in."""
        _check_person(call.principal)
        await self._management.leave(call.parts["id"], call.actor)
        return Done()

    async def customers(self, call: Call) -> Customers:
        """By id."""
        asked = call.page
        rows = await self._management.customers(
            call.principal, owned_by=call.query.organisation_id, after=asked.after, rows_max=asked.rows_max
        )
        page, after = asked.cut(rows, lambda row: row.id)
        return Customers([_customer(row) for row in page], after)

    async def make_customer(self, call: Call) -> Customer:
        """Its data belongs to the organisation from now on."""
        if not call.principal.scope.is_whole:
            raise forbidden("a token for some customers makes no others")
        wanted: NewCustomer = call.body
        made = await self._management.add_customer(
            call.principal, wanted.id, wanted.name, wanted.organisation_id, call.actor
        )
        return _customer(made)

    async def change_customer(self, call: Call) -> Customer:
        """The new organisation sees its data at once, and the former one no longer."""
        wanted: CustomerChange = call.body
        is_possible = CUSTOMER_ID.fullmatch(call.parts["id"]) is not None
        if not is_possible or not (call.principal.operates or call.principal.scope.has(call.parts["id"])):
            raise unknown("customer")
        made = await self._management.change_customer(
            call.principal, call.parts["id"], wanted.name, wanted.organisation_id, call.actor
        )
        return _customer(made)


def _check_person(principal: Principal) -> None:
    if principal.kind != "person":
        raise forbidden("a token is of one organisation")


def _customer(row: OwnedCustomer) -> Customer:
    return Customer(row.id, row.name, row.organisation_id, ms(row.created_at))
