"""The routes of pages: one document for all screens, and those of the login and of operators."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from services.accounts.http.access import INSTALLATION_PAGE, PAGE, PUBLIC, PUBLIC_PAGE, Access, Routing
from services.dashboard.page import bundle, modules, styles
from services.dashboard.page.files import File, Files

log = structlog.get_logger("services.dashboard")

STATIC: Final = bundle.STATIC
#: Pages with a document of their own.
_OWN: Final[Mapping[str, tuple[str, Access]]] = {
    "/login": ("pages/login.html", PUBLIC_PAGE),
    # The reader of the API's document.
    "/docs": ("pages/reference.html", PUBLIC_PAGE),
    "/partitions": ("pages/partitions.html", INSTALLATION_PAGE),
}


class Pages:
    """HTTP to and from the page's files."""

    def __init__(self, static: Path = STATIC) -> None:
        self._files = Files(static)
        texts = self._files.texts((".css", ".html", ".js", ".mjs"))
        document, styled = styles.joined(texts["index.html"], texts)
        self._files.add(styles.PATH, styled)
        by_screen: Mapping[str, str] = {}
        if bundle.is_of(self._files.bodies()):
            document = bundle.of_bundle(document)
        else:
            log.warning("page_not_bundled", consequence="first loads are slower", remedy="make setup")
            by_screen = modules.documents(document, texts)
        self._no_screen = File.of(document.encode(), ".html")
        self._screens = {name: File.of(text.encode(), ".html") for name, text in by_screen.items()}

    def add_to(self, routing: Routing) -> None:
        """Adds the routes. Last of all: the address of a screen is any word that no other route has."""
        routing.get("/", self._screen, PAGE, name="index")
        for path, (name, access) in _OWN.items():
            routing.get(path, self._document(name), access, name=f"{path[1:]}-page")
        routing.get("/static/{path:.+}", self._files.serve, PUBLIC, name="static")
        # `static/core/place/screens.js` knows the screens, and says so of a word that names no screen.
        routing.get("/{screen:[a-z]+}", self._screen, PAGE, name="screen")

    async def _screen(self, request: web.Request) -> web.StreamResponse:
        return self._screens.get(request.match_info.get("screen", ""), self._no_screen).answer(request)

    def _document(self, name: str) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            return self._files.answer(request, name)

        return answer
