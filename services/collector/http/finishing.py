"""The last step of every answer: the headers that let a page's script read it, and its count."""

from dataclasses import dataclass

from aiohttp import web
from prometheus_client import Counter

from services.collector.sink.sink import Sink
from services.rim.admin.admin import Check
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_REQUESTS


@dataclass
class Drain:
    """Whether the collector is stopping: not ready for new clients, and asking the present ones to leave."""

    begun: bool = False

    def readiness(self, sink: Sink) -> Check:
        """Whether clients should be sent here.

        An unreachable broker does not count: all collectors would leave at once, and clients would get an error without CORS
        headers. They get a 503 from here.
        """
        if self.begun:
            return Check(False, "draining")
        return sink.health()


class Finishing:
    """Finishes answers, errors of any kind too."""

    def __init__(self, drain: Drain) -> None:
        self.drain = drain
        self._requests = metrics.counter(COLLECTOR_REQUESTS)
        self._counted: dict[tuple[str, int], Counter] = {}

    async def on_prepare(self, request: web.Request, response: web.StreamResponse) -> None:
        """Finishes an answer of the application: its signal before headers are written."""
        self.finish(request, response, request.match_info.route.name or "none")

    def finish(self, request: web.BaseRequest, response: web.StreamResponse, route: str) -> None:
        """Adds the headers, and counts the answer under its route."""
        headers = response.headers
        for name, value in headers_for(request.headers.get("Origin")):
            headers[name] = value
        if self.drain.begun:
            response.force_close()
            headers["Connection"] = "close"
        self.count(route, response.status)

    def count(self, route: str, status: int) -> None:
        """Counts an answer."""
        counter = self._counted.get((route, status))
        if counter is None:
            counter = self._counted[route, status] = self._requests.labels(route, str(status))
        counter.inc()


_FOR_ALL = (("Access-Control-Allow-Origin", "*"),)


def headers_for(origin: str | None) -> tuple[tuple[str, str], ...]:
    """The headers that let the page of this origin read the answer."""
    # Browsers write origins in ASCII.
    if origin is None or not origin.isascii():
        return _FOR_ALL
    # Whether the page's request has credentials cannot be seen, and "*" fails those that did.
    return (
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Allow-Credentials", "true"),
        ("Vary", "Origin"),
        ("Access-Control-Expose-Headers", "Retry-After"),
    )
