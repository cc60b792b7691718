"""The loop of these tests is that of the collector. Its transports differ from those of asyncio's own."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import uvloop

if TYPE_CHECKING:
    import asyncio


def pytest_asyncio_loop_factories() -> "Mapping[str, Callable[[], asyncio.AbstractEventLoop]]":
    return {"uvloop": uvloop.new_event_loop}
