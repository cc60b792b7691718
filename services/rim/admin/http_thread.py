"""HttpThread: an aiohttp application on a thread of its own, so that a busy service still answers."""

import asyncio
import threading
from collections.abc import Callable

from aiohttp import web

from services.rim.admin.guarded_runner import GuardedRunner

START_SECONDS_MAX = 10.0


class HttpThread:
    """Serves what `make_app` makes; `make_app` runs on the server's own loop."""

    def __init__(self, name: str, host: str, port: int, make_app: Callable[[], web.Application]) -> None:
        self._name = name
        self._host = host
        self._port = port
        self._make_app = make_app
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Listens; raises `OSError` when the port is not available."""
        self._thread.start()
        if not self._started.wait(START_SECONDS_MAX):
            raise OSError(f"{self._name} endpoint on {self._host}:{self._port} did not start")
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stops listening. Safe to call twice."""
        if self._failure is None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(START_SECONDS_MAX)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = GuardedRunner(self._make_app())
        try:
            self._loop.run_until_complete(runner.setup())
            self._loop.run_until_complete(web.TCPSite(runner, self._host, self._port).start())
        except OSError as error:
            self._failure = error
            self._loop.run_until_complete(runner.cleanup())
            self._loop.close()
            self._started.set()
            return
        self._started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()
