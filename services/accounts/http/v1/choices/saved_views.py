"""`/v1/saved-views`: addresses of the page under a name, of a person or of the whole organisation."""

from functools import partial
from typing import Annotated, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from services.accounts.core.roles import Permission
from services.accounts.http.access import ALL, METRICS
from services.accounts.http.problems import forbidden, unknown
from services.accounts.http.v1.operations import Call, Done, Operation, ms
from services.accounts.service import Accounts
from services.accounts.store.customers import saved_views
from services.accounts.store.customers.saved_views import SavedViewRow
from shared.http.patterns import whole
from shared.schemas.beacon import CUSTOMER_ID

#: A screen of this page and its parameters: never another host.
_ADDRESS: Final = whole(r"/[a-z_]*(\?[^\s#]*)?")


class SavedView(msgspec.Struct, frozen=True):
    """A saved view. `address` is path and query of the page; `is_shared`: everybody of the organisation sees it."""

    id: str
    name: str
    address: str
    is_shared: bool
    made_by: str
    saved_ms: int


class SavedViews(msgspec.Struct, frozen=True):
    """All that the asker sees, by name."""

    saved_views: list[SavedView]


class NewSavedView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A saved view to be stored. The same name of the same owner again: with the new address."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=whole(r"\S(.*\S)?"))]
    address: Annotated[str, msgspec.Meta(max_length=8_000, pattern=_ADDRESS)]
    is_shared: bool = False


class SavedViewOperations:
    """The operations. The address of a customer that a person may not see is not shown to that person."""

    def __init__(self, accounts: Accounts) -> None:
        self._ask = accounts.postgres.ask

    def operations(self) -> list[Operation]:
        """All of them."""
        path = "/v1/saved-views"
        made = NewSavedView
        return [
            Operation(
                "get", path, "Saved views: the own ones and the organisation's", METRICS, self.listed, SavedViews
            ),
            Operation(
                "post",
                path,
                "Saves a view of the page",
                METRICS,
                self.save,
                SavedView,
                body=made,
                status=201,
                can_conflict=True,
            ),
            Operation("delete", f"{path}/{{id}}", "Deletes a saved view", METRICS, self.delete),
        ]

    async def listed(self, call: Call) -> SavedViews:
        """Those whose customer the asker may see."""
        rows = await self._ask(partial(saved_views.saved_views, actor=call.actor))
        scope = call.principal.scope
        return SavedViews([_shown(one) for one in rows if one.customer_id is None or scope.has(one.customer_id)])

    async def save(self, call: Call) -> SavedView:
        """Needs permission `edit` for the organisation's."""
        asked: NewSavedView = call.body
        if asked.is_shared and not call.principal.may(Permission.EDIT):
            raise forbidden("A view for the whole organisation needs permission edit.")
        if not asked.is_shared and call.principal.kind != "person":
            raise forbidden("A token has no views of its own.")
        named = parse_qs(urlsplit(asked.address).query).get("customer", [ALL])[0]
        if named != ALL and not (CUSTOMER_ID.fullmatch(named) and call.principal.scope.has(named)):
            raise unknown("customer")
        keep = partial(
            saved_views.save,
            actor=call.actor,
            name=asked.name,
            address=asked.address,
            customer_id=None if named == ALL else named,
            is_shared=asked.is_shared,
        )
        return _shown(await self._ask(keep))

    async def delete(self, call: Call) -> Done:
        """Needs permission `edit` for the organisation's."""
        shared_too = call.principal.may(Permission.EDIT)
        remove = partial(saved_views.delete, actor=call.actor, view_id=call.parts["id"], shared_too=shared_too)
        try:
            await self._ask(remove)
        except PermissionError:
            raise forbidden("A view of the whole organisation needs permission edit.") from None
        return Done()


def _shown(row: SavedViewRow) -> SavedView:
    return SavedView(row.id, row.name, row.address, row.is_shared, row.made_by, ms(row.saved_at))
