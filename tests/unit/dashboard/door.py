"""Who asks the dashboard in unit tests: two organisations, one of which runs the installation; no Postgres."""

from collections.abc import Mapping
from typing import Final

from services.accounts.core.credentials import ID_BYTES, SECRET_BYTES, Credential, Kind, new_credential
from services.accounts.core.customer_scope import EVERYTHING, CustomerScope
from services.accounts.core.principal import Principal
from services.accounts.core.roles import TOKEN_SCOPES, Permission, Role, permissions_of
from services.accounts.http.guard import Cookie
from services.accounts.http.hosts import Hosts
from services.accounts.http.identities import Identities
from services.accounts.http.routes import AccountRoutes
from services.accounts.service import Accounts
from services.accounts.store.audit import Actor
from services.dashboard.app import Door


def credential(kind: Kind, number: int) -> Credential:
    """The same for the same number."""
    return new_credential(kind, bytes([number]) * (ID_BYTES + SECRET_BYTES))


def person(role: Role, scope: CustomerScope, *, organisation: str, runs_installation: bool = False) -> Principal:
    """Somebody of an organisation."""
    return Principal(
        kind="person",
        id=f"{role}-{organisation}",
        name=f"{role}@{organisation}",
        organisation_id=organisation,
        organisation=organisation,
        role=role,
        permissions=permissions_of(role),
        scope=scope,
        runs_installation=runs_installation,
    )


def token(scopes: frozenset[Permission], scope: CustomerScope) -> Principal:
    """An API token of organisation globex."""
    return Principal("token", "t", "a token", "globex", "globex", None, scopes, scope, runs_installation=False)


#: The owner of the installation, who sees everything; an admin and a viewer of globex, who see two customers.
OWNER: Final = credential(Kind.SESSION, 1)
GLOBEX_ADMIN: Final = credential(Kind.SESSION, 2)
GLOBEX_VIEWER: Final = credential(Kind.SESSION, 3)
ENDED: Final = credential(Kind.SESSION, 4)
METRICS_TOKEN: Final = credential(Kind.TOKEN, 5)
VIEWS_TOKEN: Final = credential(Kind.TOKEN, 6)
#: Every scope, for one customer, and for all of globex.
TEAM_TOKEN: Final = credential(Kind.TOKEN, 7)
WHOLE_TOKEN: Final = credential(Kind.TOKEN, 8)
_GLOBEX: Final = CustomerScope(own=frozenset({"globex", "globex-tv"}))


class Known(Identities):
    """Those above. `problem` is raised for everybody, where it is set."""

    def __init__(self, accounts: Accounts) -> None:
        super().__init__(accounts.postgres)
        self.problem: Exception | None = None
        self.people: dict[Credential, Principal] = {
            OWNER: person(Role.OWNER, EVERYTHING, organisation="home", runs_installation=True),
            GLOBEX_ADMIN: person(Role.ADMIN, _GLOBEX, organisation="globex"),
            GLOBEX_VIEWER: person(Role.VIEWER, _GLOBEX, organisation="globex"),
            METRICS_TOKEN: token(frozenset({Permission.READ_METRICS}), _GLOBEX),
            VIEWS_TOKEN: token(frozenset({Permission.READ_VIEWS}), _GLOBEX),
            TEAM_TOKEN: token(frozenset(TOKEN_SCOPES), _GLOBEX.restricted_to(["globex"])),
            WHOLE_TOKEN: token(frozenset(TOKEN_SCOPES), _GLOBEX),
        }

    async def principal(self, credential: Credential) -> Principal | None:
        """See `Identities`."""
        if self.problem is not None:
            raise self.problem
        return self.people.get(credential)


class NotedLooks:
    """Keeps what is noted; `problem` is raised instead, where it is set."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, str, str]] = []
        self.problem: Exception | None = None

    async def note(self, actor: Actor, action: str, *targets: str) -> None:
        """See `Audit`."""
        if targets and self.problem is not None:
            raise self.problem
        self.noted += [(actor.name, action, target) for target in targets]


def door() -> Door:
    """What an application is made with. No login works: there is no Postgres."""
    accounts = Accounts("postgresql://nobody@127.0.0.1:1/none", seconds_max=0.1)
    known, cookie = Known(accounts), Cookie(is_secure=False)
    return Door(known, AccountRoutes(accounts, cookie=cookie), Hosts(["x"]), cookie, NotedLooks())


def cookies(session: Credential) -> Mapping[str, str]:
    """What a browser of this session sends."""
    return {Cookie(is_secure=False).name: session.text}


def cookie_header(session: Credential) -> bytes:
    """The same as a line of a request."""
    return f"Cookie: {Cookie(is_secure=False).name}={session.text}".encode()
