"""The application that the tests of its routes ask."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.unit.dashboard.desk import Desk


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    await made.client.start_server()
    settling = asyncio.create_task(made.board.keep_settling())
    yield made
    made.board.close()
    settling.cancel()
    await made.client.close()
