"""`/limits?customer=...`: the page of one customer's limits, and the question that it asks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson
from aiohttp import web

from services.dashboard.limits.queries import LimitsSource
from services.rim.database.reading_pool import NotPublished, PostgresAway, QueryRefused
from shared.schemas.beacon import CUSTOMER_ID

_PAGE: Final = Path(__file__).parents[1] / "static" / "limits.html"


class LimitsRoutes:
    """HTTP to and from the limits; nothing is computed here."""

    def __init__(self, source: LimitsSource, now_ms: Callable[[], int]) -> None:
        self._source = source
        self._now_ms = now_ms

    def add_to(self, app: web.Application) -> None:
        """Adds the routes."""
        app.router.add_get("/limits", self.page, name="limits-page")
        app.router.add_get("/api/limits", self.limits, name="limits")

    async def page(self, _: web.Request) -> web.FileResponse:
        """The page of one `customer`."""
        return web.FileResponse(_PAGE)

    async def limits(self, request: web.Request) -> web.Response:
        """The limits of one `customer`, and what they refused in the last 24 hours."""
        customer_id = request.query.get("customer", "")
        if not CUSTOMER_ID.fullmatch(customer_id):
            return _json({"error": "name", "detail": "customer names a customer"}, status=400)
        try:
            found = await self._source.of(customer_id)
        except PostgresAway:
            return _json({"error": "away", "detail": "Postgres does not answer"}, status=503)
        except NotPublished:
            detail = "the database has no customers: DASHBOARD_CUSTOMERS_DSN names the one that collectors read"
            return _json({"error": "off", "detail": detail}, status=404)
        except QueryRefused:
            return _json({"error": "refused", "detail": "Postgres refuses the query"}, status=500)
        if found is None:
            return _json({"error": "unknown", "detail": "there is no such customer"}, status=404)
        return _json({"now_ms": self._now_ms(), **found.as_json()})


def _json(content: dict[str, Any], *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), content_type="application/json", status=status)
