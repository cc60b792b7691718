"""`/v1/custom-dimensions`: what an organisation calls the custom dimensions of its views."""

from functools import partial
from typing import Annotated

import msgspec

from services.accounts.core.texts import checked_name
from services.accounts.http.access import EDITING, METRICS
from services.accounts.http.v1.operations import Call, Operation
from services.accounts.service import Accounts
from services.accounts.store.customers import custom_dimensions
from shared.http.patterns import whole

_Name = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=100,
        pattern=whole(r"[^\x00-\x1f]+"),
        description="as players send it; filters and breakdowns ask for `custom.<name>`",
    ),
]


class CustomDimension(msgspec.Struct, frozen=True):
    """A custom dimension, and what people call it."""

    name: str
    title: str


class CustomDimensions(msgspec.Struct, frozen=True):
    """All that have a title, by title."""

    custom_dimensions: list[CustomDimension]


class CustomDimensionChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The title of one; null: none of its own any more."""

    name: _Name
    title: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class CustomDimensionOperations:
    """The operations. Titles are of the organisation: what players send is named alike in all its environments."""

    def __init__(self, accounts: Accounts) -> None:
        self._ask = accounts.postgres.ask

    def operations(self) -> list[Operation]:
        """All of them."""
        path, answers = "/v1/custom-dimensions", CustomDimensions
        return [
            Operation("get", path, "Custom dimensions that have a title", METRICS, self.listed, answers),
            Operation(
                "patch",
                path,
                "Gives one a title",
                EDITING,
                self.change,
                answers,
                body=CustomDimensionChange,
                can_conflict=True,
            ),
        ]

    async def listed(self, call: Call) -> CustomDimensions:
        """Those of the asker's organisation."""
        found = await self._ask(partial(custom_dimensions.titles, organisation_id=call.principal.organisation_id))
        return CustomDimensions([CustomDimension(name, title) for name, title in found])

    async def change(self, call: Call) -> CustomDimensions:
        """Raises `TextWrong` and `TooManyDimensions`."""
        asked: CustomDimensionChange = call.body
        title = None if asked.title is None else checked_name(asked.title, "a title")
        await self._ask(partial(custom_dimensions.name, name=asked.name, title=title, actor=call.actor))
        return await self.listed(call)
