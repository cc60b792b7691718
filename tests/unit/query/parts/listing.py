"""Lists over generated views: the views, and what DuckDB answers for them."""

import asyncio

from services.query.core.customers import EVERY_CUSTOMER
from services.query.core.question import parsed
from services.query.core.resources.errors import errors
from services.query.core.resources.errors.errors import AskedErrors, ErrorList
from services.query.listing import Lists
from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.query.parts.reading import ViewsInMemory
from tests.unit.query.parts.recounting import DAY_MS, T0_MS, counts_at

NOW_MS = T0_MS + 6 * DAY_MS
WITHIN = {"from": str(T0_MS - DAY_MS), "to": str(T0_MS + 6 * DAY_MS)}


def viewer(view: View) -> str | None:
    return view.viewer_user_id if view.viewer_user_id is not None else view.viewer_id


def counted(views: list[View]) -> list[View]:
    return [one for one in views if not one.deleted and T0_MS - DAY_MS <= counts_at(one) < T0_MS + 6 * DAY_MS]


def list_of_errors(engine: Engine, views: list[View], **given: str) -> ErrorList:
    parameters = list((WITHIN | given).items())
    asked = errors.understood(parsed(AskedErrors, parameters), lambda _: EVERY_CUSTOMER, NOW_MS, days_max=400)
    return asyncio.run(Lists(ViewsInMemory(engine, views)).errors(asked))
