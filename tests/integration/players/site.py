"""What players load, over TLS, under the names that docs/clients.md uses: pages, packages, media that stall or are missing.

A page has an origin of its own (`https://<client>-<story>.example.com`), so the media server knows whose request it is.
`collect.example.com` is the collector: bytes go through as they are.
"""

import asyncio
import json
import mimetypes
import re
import ssl
import subprocess
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web

from deploy.local.paths import PLAYERS
from deploy.local.ports import free_port
from tests.integration.players.pages import page_of

#: Segments from this one on are slow, or missing; the ones before it last 4 s.
TROUBLE_FROM_SEGMENT: Final = 3
_TRICKLE_BYTES: Final = 64
_TRICKLE_SECONDS: Final = 0.25
_PIECE_BYTES: Final = 64 * 1024
_HERE: Final = Path(__file__).parent


class Site(threading.Thread):
    """Both servers, on a thread and a loop of their own."""

    def __init__(self, folder: Path, media: Path, collector_port: int) -> None:
        super().__init__(name="site")
        self._media = media
        self._collector_port = collector_port
        self._tls = _tls(folder)
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._started = threading.Event()
        #: Stories whose slow segments come fast again.
        self._released: set[str] = set()
        #: What pages saw after their story's end, by story.
        self.saw_later: dict[str, dict[str, Any]] = {}
        self._port, self._collect_port = free_port(), free_port()

    @property
    def chromium_args(self) -> list[str]:
        """Arguments with which Chromium finds the site under its names, and trusts it."""
        rules = f"MAP collect.example.com 127.0.0.1:{self._collect_port},MAP *.example.com 127.0.0.1:{self._port},MAP * ~NOTFOUND"
        return [f"--host-resolver-rules={rules}", "--ignore-certificate-errors"]

    def __enter__(self) -> "Site":
        self.start()
        assert self._started.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self.join(30)
        assert not self.is_alive()

    def run(self) -> None:
        """The thread's work."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        app = web.Application(middlewares=[_cors])
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/story.js", _story),
                web.post("/release", self._release),
                web.post("/saw", self._saw),
                web.get(r"/packages/{path:.+}", _package),
                web.get(r"/my-video/{name:[\w.-]+}", self._media_file),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self._port, ssl_context=self._tls).start()
        tunnel = await asyncio.start_server(self._through, "127.0.0.1", self._collect_port, ssl=self._tls)
        self._started.set()
        await self._stopped.wait()
        tunnel.close()
        await runner.cleanup()

    async def _page(self, request: web.Request) -> web.Response:
        return web.Response(text=page_of(_story_of(f"https://{request.host}")), content_type="text/html")

    async def _release(self, request: web.Request) -> web.Response:
        self._released.add(_story_of(request.headers["Origin"]))
        return web.Response(status=204)

    async def _saw(self, request: web.Request) -> web.Response:
        story, saw = _story_of(request.headers["Origin"]), await request.json()
        known = self.saw_later.get(story)
        # Those of one page may come in another order.
        if known is None or len(saw["events"]) > len(known["events"]):
            self.saw_later[story] = saw
        return web.Response(status=204)

    async def _media_file(self, request: web.Request) -> web.StreamResponse:
        path = self._media / request.match_info["name"]
        story = _story_of(request.headers.get("Origin", ""))
        segment = re.fullmatch(r"seg-\d+-(\d+)\.m4s", path.name)
        in_trouble = segment is not None and int(segment[1]) >= TROUBLE_FROM_SEGMENT
        if (in_trouble and story.endswith("-missing")) or not path.exists():
            return web.Response(status=404)
        if in_trouble and story.endswith("-slow") and story not in self._released:
            return await self._trickle(request, _file(path).body, story)
        return _file(path)

    async def _trickle(self, request: web.Request, content: bytes, story: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(content))} | _CORS)
        await response.prepare(request)
        sent = 0
        while story not in self._released and sent < len(content) // 2:
            await response.write(content[sent : sent + _TRICKLE_BYTES])
            sent += _TRICKLE_BYTES
            await asyncio.sleep(_TRICKLE_SECONDS)
        await response.write(content[sent:])
        return response

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        collector_reader, collector_writer = await asyncio.open_connection("127.0.0.1", self._collector_port)
        try:
            await asyncio.gather(_pour(reader, collector_writer), _pour(collector_reader, writer))
        finally:
            collector_writer.close()
            writer.close()


_CORS: Final = {"Access-Control-Allow-Origin": "*", "Timing-Allow-Origin": "*"}


@web.middleware
async def _cors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    response = await handler(request)
    if not response.prepared:
        response.headers.update(_CORS)
    return response


async def _story(_: web.Request) -> web.Response:
    return _file(_HERE / "story.js")


async def _package(request: web.Request) -> web.Response:
    path = PLAYERS / request.match_info["path"]
    if path.suffix != ".json":
        return _file(path)
    # A page's bundler does this: JSON as a module.
    text = f"export default {json.dumps(json.loads(path.read_text()))};"
    return web.Response(text=text, content_type="text/javascript")


def _file(path: Path) -> web.Response:
    # Not `FileResponse`: over TLS, a browser that goes away in the middle breaks its connection's loop.
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return web.Response(body=path.read_bytes(), content_type=kind)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        writer.close()
    except OSError:
        writer.close()


def _story_of(origin: str) -> str:
    return (urlsplit(origin).hostname or "").removesuffix(".example.com")


def _tls(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=example.com"),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
