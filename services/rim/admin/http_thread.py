"""HttpThread: an aiohttp application on a thread of its own, so that a busy service still answers."""

import asyncio
import ssl
import threading
from collections.abc import Callable

from aiohttp import web

from services.rim.admin.guarded_runner import GuardedRunner

START_SECONDS_MAX = 10.0


class HttpThread:
    """Serves what `make_app` makes, over TLS where there is a context; `make_app` runs on the server's own loop."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        make_app: Callable[[], web.Application],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._name = name
        self._host = host
        self._port = port
        self._make_app = make_app
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Listens; raises `OSError` when the port is not available, or no descriptor is left."""
        self._thread.start()
        if not self._started.wait(START_SECONDS_MAX):
            raise OSError(f"{self._name} endpoint on {self._host}:{self._port} did not start")
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stops listening. Safe to call twice."""
        if self._failure is None and self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(START_SECONDS_MAX)

    def _run(self) -> None:
        try:
            loop = asyncio.new_event_loop()
        except OSError as error:
            # Its traceback would keep half a loop, which complains when it is collected: after the process's last line.
            self._fail(error.with_traceback(None))
            return
        asyncio.set_event_loop(loop)
        runner = GuardedRunner(self._make_app())
        try:
            loop.run_until_complete(runner.setup())
            loop.run_until_complete(web.TCPSite(runner, self._host, self._port, ssl_context=self._tls).start())
        except OSError as error:
            loop.run_until_complete(runner.cleanup())
            loop.close()
            self._fail(error)
            return
        self._loop = loop
        self._started.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    def _fail(self, error: OSError) -> None:
        self._failure = error
        self._started.set()
