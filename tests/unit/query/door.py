"""Who asks the query service in unit tests: the people and tokens that the dashboard's tests know; no Postgres."""

from services.accounts.http.guard import Cookie
from services.accounts.http.hosts import Hosts
from services.query.http.app import Door
from tests.unit.dashboard import door as dashboard
from tests.unit.dashboard.door import Known


def door() -> Door:
    """What an application is made with."""
    made = dashboard.door()
    assert isinstance(made.identities, Known)
    return Door(made.identities, Hosts([]), Cookie(is_secure=False))
