"""`table`: every story of users runs in three weathers."""

from typing import get_args

import pytest

from services.processor.engine.driver import Weather
from tests.unit.processor.applications.users.table import Table


@pytest.fixture(params=get_args(Weather))
def weather(request: pytest.FixtureRequest) -> Weather:
    found: Weather = request.param
    return found


@pytest.fixture
def table(weather: Weather) -> Table:
    """An empty table."""
    return Table(weather)
