"""`/limits?customer=...`: the page of one customer's limits, and the question that it asks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson
from aiohttp import web

from services.accounts.http.access import METRICS_OF_ONE, PAGE, Routing
from services.accounts.http.guard import unknown_customer
from services.dashboard.limits.queries import LimitsSource
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused

_PAGE: Final = Path(__file__).parents[1] / "static" / "limits.html"


class LimitsRoutes:
    """HTTP to and from the limits; nothing is computed here."""

    def __init__(self, source: LimitsSource, now_ms: Callable[[], int]) -> None:
        self._source = source
        self._now_ms = now_ms

    def add_to(self, routing: Routing) -> None:
        """Adds the routes."""
        routing.get("/limits", self.page, PAGE, name="limits-page")
        routing.get("/api/limits", self.limits, METRICS_OF_ONE, name="limits")

    async def page(self, _: web.Request) -> web.FileResponse:
        """The page of one `customer`."""
        return web.FileResponse(_PAGE)

    async def limits(self, request: web.Request) -> web.Response:
        """The limits of one `customer`, and what they refused in the last 24 hours."""
        customer_id = request.query["customer"]
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
            return unknown_customer()
        return _json({"now_ms": self._now_ms(), **found.as_json()})


def _json(content: dict[str, Any], *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), content_type="application/json", status=status)
