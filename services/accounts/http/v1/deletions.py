"""`/v1/deletions`: a viewer's data, or all of a customer's, is deleted everywhere; a request has an id, a state and its proof."""

from typing import Annotated, Final, Literal

import msgspec

from services.accounts.core.deletions import SESSIONS_MAX, VIEWER_CHARS_MAX
from services.accounts.http.access import MANAGEMENT
from services.accounts.http.problems import unknown
from services.accounts.http.requests import BodyWrong
from services.accounts.http.v1.operations import Call, Operation, PageAsked, ms, ms_or_none
from services.accounts.http.v1.tenants import CustomerId
from services.accounts.service import Accounts
from services.accounts.store.customers import deletions
from services.accounts.store.customers.deletions import Deletion, StepRow
from shared.http.patterns import whole
from shared.schemas.recording import SESSION_ID

_Session = Annotated[str, msgspec.Meta(pattern=whole(SESSION_ID.pattern))]
#: Behind every row.
_NEWEST: Final = 2**62


class OneStep(msgspec.Struct, frozen=True):
    """A kind of place. `found`: how many were deleted, by name; of `topics`, until when (ms since 1970) each may have it."""

    step: str
    state: Literal["pending", "running", "done"]
    found: dict[str, int]
    began_ms: int | None
    ended_ms: int | None


class OneDeletion(msgspec.Struct, frozen=True):
    """A request. `viewer` is null for a whole customer, and once it is done; `viewer_sha256` stays."""

    id: str
    customer: str
    viewer: str | None
    viewer_sha256: str | None
    asked_by: str
    asked_ms: int
    state: Literal["pending", "running", "done", "failed"]
    problem: str
    ended_ms: int | None
    steps: list[OneStep]


class ListedDeletions(msgspec.Struct, frozen=True):
    """A page of requests, the newest first, without their steps."""

    deletions: list[OneDeletion]
    next: str | None


class NewDeletion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data to be deleted: a viewer's (`viewer`), or a whole customer's (`whole_customer`).

    `sessions`: recorded sessions of the viewer, besides those that the viewer's views name.
    """

    customer: CustomerId
    viewer: Annotated[str, msgspec.Meta(min_length=1, max_length=VIEWER_CHARS_MAX)] | None = None
    whole_customer: bool = False
    sessions: Annotated[list[_Session], msgspec.Meta(max_length=SESSIONS_MAX)] = []


class DeletionOperations:
    """The operations."""

    def __init__(self, accounts: Accounts) -> None:
        self._ask = accounts.postgres.ask

    def operations(self) -> list[Operation]:
        """All of them."""
        return [
            Operation(
                "get",
                "/v1/deletions",
                "Requests that data be deleted, the newest first",
                MANAGEMENT,
                self.listed,
                ListedDeletions,
                query=PageAsked,
            ),
            Operation(
                "post",
                "/v1/deletions",
                "Deletes a viewer's data, or a customer's, everywhere",
                MANAGEMENT,
                self.ask,
                OneDeletion,
                body=NewDeletion,
                status=202,
                can_conflict=True,
            ),
            Operation(
                "get",
                "/v1/deletions/{id}",
                "One request: its state, and what was deleted where",
                MANAGEMENT,
                self.one,
                OneDeletion,
            ),
        ]

    async def listed(self, call: Call) -> ListedDeletions:
        """Those of the customers that the asker may see, no matter who asked for them."""
        asked = call.page
        scope, before = call.principal.scope, _NEWEST if asked.number is None else asked.number
        own = None if scope.is_whole else sorted(scope.own)
        rows = await self._ask(
            lambda connection: deletions.newest(
                connection, call.principal.organisation_id, own, before=before, rows_max=asked.rows_max
            )
        )
        page, after = asked.cut(rows, lambda row: str(row.number))
        return ListedDeletions([_shown(row, []) for row in page], after)

    async def ask(self, call: Call) -> OneDeletion:
        """It is begun within seconds. The same request again, while it is under way, is that one."""
        body: NewDeletion = call.body
        if (body.viewer is not None) == body.whole_customer:
            raise BodyWrong("either viewer or whole_customer says what is deleted")
        if body.whole_customer and body.sessions:
            raise BodyWrong("sessions are a viewer's: of a whole customer all are deleted")
        if not call.principal.scope.has(body.customer):
            raise unknown("customer")
        new = deletions.wanted(
            body.customer,
            body.viewer,
            body.sessions,
            organisation_id=call.principal.organisation_id,
            asked_by=call.principal.name,
        )
        made = await self._ask(lambda connection: deletions.ask(connection, new, call.actor))
        return await self._one(made.id)

    async def one(self, call: Call) -> OneDeletion:
        """404 for another organisation's customer."""
        found = await self._ask(lambda connection: deletions.one(connection, call.parts["id"]))
        if found is None or not call.principal.scope.has(found[0].customer_id):
            raise unknown("deletion")
        return _shown(*found)

    async def _one(self, deletion_id: str) -> OneDeletion:
        found = await self._ask(lambda connection: deletions.one(connection, deletion_id))
        if found is None:
            raise unknown("deletion")
        return _shown(*found)


def _shown(row: Deletion, steps: list[StepRow]) -> OneDeletion:
    fields = {
        "id": row.id,
        "customer": row.customer_id,
        "viewer": row.viewer,
        "viewer_sha256": None if row.viewer_sha256 is None else row.viewer_sha256.hex(),
        "asked_by": row.asked_by,
        "asked_ms": ms(row.asked_at),
        "state": row.state,
        "problem": row.problem,
        "ended_ms": ms_or_none(row.ended_at),
        "steps": [
            {
                "step": step.step,
                "state": step.state,
                "found": dict(step.found),
                "began_ms": ms_or_none(step.began_at),
                "ended_ms": ms_or_none(step.ended_at),
            }
            for step in steps
        ],
    }
    return msgspec.convert(fields, OneDeletion)
