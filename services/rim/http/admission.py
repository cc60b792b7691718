"""Which service may use which route: the credentials of callers before the routes of a service that services ask."""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from services.rim.http.credentials import Credential, Credentials, Scope

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_CUSTOMER: Final = "customer"


class Admission:
    """Admits a request whose token has the scope of its route, and reads no customer but its own.

    A request with the header `passed_on` comes from another slot, which has admitted it already: it wants scope `slots` and no
    other. Any answer is about the caller alone: 401 without a known token, and 403 for one without the scope. For another
    organisation's customer it is 404, as for one that does not exist.
    """

    def __init__(self, credentials: Credentials, passed_on: str) -> None:
        self._credentials = credentials
        self._passed_on = passed_on
        self._scopes: dict[tuple[str, str], Scope] = {}

    def want(self, route: web.AbstractRoute, scope: Scope) -> None:
        """From now on requests of a route want this scope. A route without one admits nobody."""
        assert route.resource is not None
        self._scopes[route.resource.canonical, route.method] = scope

    def scope_of(self, request: web.Request) -> Scope | None:
        """What a request of this route wants."""
        resource = request.match_info.route.resource
        if resource is None:
            return None
        method = "GET" if request.method == "HEAD" else request.method
        return self._scopes.get((resource.canonical, method))

    @web.middleware
    async def admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """The middleware."""
        holder = self._credentials.holder(request.headers.get("Authorization", ""))
        if holder is None:
            headers = {"WWW-Authenticate": 'Bearer realm="playhead lookups"'}
            raise web.HTTPUnauthorized(headers=headers, text="a bearer token is wanted\n")
        if request.match_info.http_exception is not None:
            return await handler(request)
        wanted: Scope | None = "slots" if self._passed_on in request.headers else self.scope_of(request)
        if wanted not in holder.scopes:
            raise web.HTTPForbidden(text=f"{holder.name} has no scope {wanted}\n")
        if not _is_of(holder, request):
            raise web.HTTPNotFound(text="nothing is here\n")
        return await handler(request)


def _is_of(holder: Credential, request: web.Request) -> bool:
    """Whether a caller for single customers names them, and no other."""
    if holder.customers is None:
        return True
    named = request.query.getall(_CUSTOMER, [])
    if _CUSTOMER in request.match_info:
        named = [*named, request.match_info[_CUSTOMER]]
    return bool(named) and holder.reads(named)
