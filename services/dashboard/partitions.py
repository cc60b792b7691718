"""`/v1/partitions`: every partition and slot of the processor, for operators."""

from typing import Final

from aiohttp import web

from services.accounts.http.access import INSTALLATION, Routing
from services.dashboard.views import Views
from services.rim.http.lookups import LookupsAway, LookupsRefused
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import problem_response
from shared.http.problems import Problem
from shared.schemas.slots import SlotsOverview

OPERATIONS: Final = [
    Operation(
        "/v1/partitions",
        "Every partition of the processor with its owner and state, and every slot; for who runs the installation",
        SlotsOverview,
        statuses=(*GUARDED, 502),
        tag="installation",
    )
]


class PartitionRoutes:
    """HTTP to and from the processor; None: its lookups are off."""

    def __init__(self, views: Views | None) -> None:
        self._views = views

    def add_to(self, routing: Routing) -> None:
        """Adds the route."""
        routing.get("/v1/partitions", self.partitions, INSTALLATION, name="partitions")

    async def partitions(self, _: web.Request) -> web.Response:
        """Partitions and slots as the processor reports them now."""
        if self._views is None:
            detail = "DASHBOARD_LOOKUP_URL and DASHBOARD_LOOKUP_TOKEN are not set."
            return problem_response(Problem(404, "Nothing is here", "lookups-off", detail))
        try:
            found = await self._views.partitions()
        except LookupsAway:
            return problem_response(Problem(503, "No slot of the processor answers for its partitions", "lookups-away"))
        except LookupsRefused:
            return problem_response(Problem(502, "The processor refuses the question", "lookups-refused"))
        # As it came: a processor that is newer has more to say.
        return web.Response(body=found, content_type="application/json")
