"""Who asks the query service in unit tests: the people and tokens that the dashboard's tests know; no Postgres."""

from typing import Any, TypeVar

from services.accounts.http.guard import Cookie
from services.accounts.http.hosts import Hosts
from services.accounts.store.audit import Actor
from services.query.http.app import Door
from services.query.rim.single import OfBeacons, Place, Wanted
from tests.unit.dashboard import door as dashboard
from tests.unit.dashboard.door import Known

T = TypeVar("T")


class NotedLooks:
    """Remembers who looked at what. `problem` is raised, where it is set."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, str, str]] = []
        self.problem: Exception | None = None

    async def note(self, actor: Actor, action: str, *targets: str) -> None:
        """See `Audit`."""
        if targets and self.problem is not None:
            raise self.problem
        self.noted += [(actor.name, action, target) for target in targets]


def door() -> Door:
    """What an application is made with."""
    made = dashboard.door()
    assert isinstance(made.identities, Known)
    return Door(made.identities, Hosts([]), Cookie(is_secure=False), NotedLooks())


class Nowhere:
    """No single view is found anywhere."""

    async def hot(self, place: Place) -> dict[str, Any] | None:
        """See `SingleViews`."""
        return None

    async def landed(self, place: Place) -> dict[str, Any] | None:
        """See `SingleViews`."""
        return None

    async def beacons(self, wanted: Wanted, make: OfBeacons[T]) -> T:
        """See `SingleViews`."""
        return make([], False)

    async def recording(self, customer_id: str, session_id: str) -> tuple[int, int, int] | None:
        """See `SingleViews`."""
        return None
