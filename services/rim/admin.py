"""The admin endpoint of every service, on its own port and thread: `/livez`, `/readyz`, `/metrics`.

`/livez` says whether the process should be restarted (it never depends on Kafka); `/readyz` whether it should get work.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from services.rim.http_thread import HttpThread


@dataclass(frozen=True)
class Check:
    """The answer to a health question: yes or no, and why."""

    ok: bool
    why: str = "ok"


class AdminServer(HttpThread):
    """Serves health and metrics from a thread of its own."""

    def __init__(self, host: str, port: int, *, is_alive: Callable[[], Check], is_ready: Callable[[], Check]) -> None:
        super().__init__("admin", host, port, self._app)
        self._checks = {"/livez": is_alive, "/readyz": is_ready}

    def _app(self) -> web.Application:
        app = web.Application()
        for path, check in self._checks.items():
            app.router.add_get(path, _answer(check))
        app.router.add_get("/metrics", _metrics)
        return app


def _answer(check: Callable[[], Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(_: web.Request) -> web.Response:
        result = check()
        return web.Response(status=200 if result.ok else 503, text=result.why + "\n")

    return handler


async def _metrics(_: web.Request) -> web.Response:
    return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})
