"""`drive`: every application story runs in calm, crashing after each commit, and crashing before each."""

from collections.abc import Callable
from typing import get_args

import pytest

from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver, Weather


@pytest.fixture(params=get_args(Weather))
def drive(request: pytest.FixtureRequest) -> Callable[[Application], Driver]:
    """Makes a driver of an application in one of the three weathers."""

    def make(application: Application) -> Driver:
        return Driver(application, request.param)

    return make
