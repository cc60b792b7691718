"""A collector that listens, for the tests of its HTTP side."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.collector.http.serving import Served


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    await served.start()
    yield served
    await served.stop()
