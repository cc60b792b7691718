"""Access to a route: each route declares it where it is added. An application with one that does not is not made."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from aiohttp import web
from aiohttp.typedefs import Handler
from aiohttp.web_urldispatcher import AbstractResource, AbstractRoute

from services.accounts.core.roles import Permission

#: public: anybody; nothing of anybody's is in the answer.
#: account: anybody who is logged in, about the own account.
#: organisation: the answer is cut to the customers that the asker may see; the handler does that.
#: team: what belongs to the organisation itself (people, its tokens, its log), not to a token for some of its customers.
#: customer: the query's parameter `customer` names one that the asker may see; the guard answers 404 for every other.
#: installation: what belongs to no customer, for those who run the installation.
#: elsewhere: the request is passed on to a service that has the same guard; it finds out who asks.
Whose = Literal["public", "account", "organisation", "team", "customer", "installation", "elsewhere"]

#: What stands for all customers that the asker may see; no customer id can be this.
ALL: Final = "*"


@dataclass(frozen=True)
class Access:
    """The callers that may use a route."""

    whose: Whose
    permission: Permission | None = None
    #: A page for people: without a session the browser is led to the login.
    is_page: bool = False
    #: Of `customer`: `ALL` may stand for all that the asker may see; the handler cuts its answer to them.
    takes_all: bool = False


PUBLIC: Final = Access("public")
ELSEWHERE: Final = Access("elsewhere")
PUBLIC_PAGE: Final = Access("public", is_page=True)
ACCOUNT: Final = Access("account")
#: Without data of its own: it asks routes that name theirs.
PAGE: Final = Access("account", is_page=True)
METRICS: Final = Access("organisation", Permission.READ_METRICS)
METRICS_OF_ONE: Final = Access("customer", Permission.READ_METRICS)
METRICS_OF_ONE_OR_ALL: Final = Access("customer", Permission.READ_METRICS, takes_all=True)
VIEWS: Final = Access("organisation", Permission.READ_VIEWS)
VIEWS_OF_ONE: Final = Access("customer", Permission.READ_VIEWS)
OWNERS: Final = Access("team", Permission.OWN)
#: The handler looks at the permission: it depends on what is asked for.
ORGANISATION: Final = Access("organisation")
EDITING: Final = Access("organisation", Permission.EDIT)
MANAGEMENT: Final = Access("organisation", Permission.MANAGE)
TEAM: Final = Access("team", Permission.READ_METRICS)
TEAM_MANAGEMENT: Final = Access("team", Permission.MANAGE)
INSTALLATION: Final = Access("installation")
INSTALLATION_PAGE: Final = Access("installation", is_page=True)


class AccessUnnamed(RuntimeError):
    """A route was added without saying who may use it."""


class Routing:
    """Adds routes to an application, each with its access."""

    def __init__(self, app: web.Application) -> None:
        self._app = app
        self._access: dict[tuple[AbstractResource, str], Access] = {}

    @property
    def app(self) -> web.Application:
        """The application."""
        return self._app

    def get(self, path: str, handler: Handler, access: Access, *, name: str) -> None:
        """Adds a route of GET (and HEAD)."""
        self._name(self._app.router.add_get(path, handler, name=name), access, "GET", "HEAD")

    def post(self, path: str, handler: Handler, access: Access, *, name: str) -> None:
        """Adds a route of POST."""
        self._name(self._app.router.add_post(path, handler, name=name), access, "POST")

    def add(self, method: str, path: str, handler: Handler, access: Access, *, name: str) -> None:
        """Adds a route of any one method."""
        if method == "GET":
            self.get(path, handler, access, name=name)
        else:
            self._name(self._app.router.add_route(method, path, handler, name=name), access, method)

    def files(self, prefix: str, folder: Path, *, name: str) -> None:
        """Adds the files of a folder, which anybody may read."""
        resource = self._app.router.add_static(prefix, folder, name=name)
        for method in ("GET", "HEAD"):
            self._access[resource, method] = PUBLIC

    def of(self, route: AbstractRoute) -> Access | None:
        """The access of a route; None if it is not declared."""
        return None if route.resource is None else self._access.get((route.resource, route.method))

    def check(self) -> None:
        """Raises `AccessUnnamed` if a route has none."""
        unnamed = [f"{route.method} {_path(route)}" for route in self._app.router.routes() if self.of(route) is None]
        if unnamed:
            raise AccessUnnamed(", ".join(sorted(unnamed)))

    def listed(self) -> dict[tuple[str, str], Access | None]:
        """Every route of the application, however it was added, as method and path."""
        return {(route.method, _path(route)): self.of(route) for route in self._app.router.routes()}

    def _name(self, route: AbstractRoute, access: Access, *methods: str) -> None:
        assert route.resource is not None
        for method in methods:
            self._access[route.resource, method] = access


def _path(route: AbstractRoute) -> str:
    info: Any = route.resource.get_info() if route.resource is not None else {}
    return str(info.get("path") or info.get("formatter") or info.get("prefix") or "?")
