"""The admin endpoint of every service, on its own port and thread: `/livez`, `/readyz`, `/metrics`.

`/livez` reports whether the process should be restarted (it never depends on Kafka); `/readyz` whether it should get work. If a
token is set, a request without it gets only that answer: probes send no token. In profile `production` no caller may read more if
no token is set.
"""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from services.rim.admin.http_thread import HttpThread
from shared.settings import Settings


@dataclass(frozen=True)
class Check:
    """The answer to a health question: yes or no, and why."""

    ok: bool
    why: str = "ok"


class AdminServer(HttpThread):
    """Serves health and metrics from a thread of its own, to those whom `settings` let read them."""

    def __init__(
        self,
        host: str,
        port: int,
        settings: Settings,
        *,
        is_alive: Callable[[], Check],
        is_ready: Callable[[], Check],
    ) -> None:
        super().__init__("admin", host, port, self._app)
        token = settings.admin_token
        self._token = None if token is None else f"Bearer {token.get_secret_value()}".encode()
        self._is_open = token is None and settings.topics_profile != "production"
        self._checks = {"/livez": is_alive, "/readyz": is_ready}

    def _app(self) -> web.Application:
        app = web.Application()
        for path, check in self._checks.items():
            app.router.add_get(path, self._answer(check))
        app.router.add_get("/metrics", self._metrics)
        return app

    def _answer(self, check: Callable[[], Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handler(request: web.Request) -> web.Response:
            result = check()
            why = result.why if self._may_read(request) else "ok" if result.ok else "not ok"
            return web.Response(status=200 if result.ok else 503, text=why + "\n")

        return handler

    async def _metrics(self, request: web.Request) -> web.Response:
        if not self._may_read(request):
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def _may_read(self, request: web.Request) -> bool:
        if self._token is None:
            return self._is_open
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        return hmac.compare_digest(given, self._token)
