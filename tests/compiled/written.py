"""A plugin of pytest: notes, for each test, the SHA-256 of what it writes: `-p tests.compiled.written`.

Of its cores the changed rows, outputs and positions of each commit, and of the intake the records of each request, in order.
WRITTEN_TO names the file that gets the hashes as JSON, by test.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis.internal.conjecture import providers

VARIABLE: Final = "WRITTEN_TO"


class Written:
    """The hashes, by test."""

    def __init__(self) -> None:
        self.hashes: dict[str, Any] = {}
        self._test = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._test = item.nodeid
        return (yield)

    def add(self, checkpoint: Any) -> None:
        """What one commit makes durable."""
        written = self.hashes.setdefault(self._test, hashlib.sha256())
        for part in (*checkpoint.changes.items(), *checkpoint.outputs, checkpoint.meta):
            written.update(msgspec.msgpack.encode(part))

    def add_records(self, made: Any) -> None:
        """The records of one request."""
        self.hashes.setdefault(self._test, hashlib.sha256()).update(repr(made).encode())

    def pytest_sessionfinish(self) -> None:
        found = {test: written.hexdigest() for test, written in self.hashes.items()}
        Path(os.environ[VARIABLE]).write_text(json.dumps(found))


def pytest_configure(config: pytest.Config) -> None:
    # Imported when the build is chosen: tests/conftest.py does that.
    from services.collector.sink import records  # noqa: PLC0415
    from services.processor.engine.driver import Driver  # noqa: PLC0415

    _leave_constants_out()
    written, cut, records_of = Written(), Driver._cut, records.records_of

    def noted(driver: Driver, clock_ms: int | None, records_max: int | None) -> Any:
        checkpoint = cut(driver, clock_ms, records_max)
        written.add(checkpoint)
        return checkpoint

    def noted_records(*given: Any, **named: Any) -> Any:
        made = records_of(*given, **named)
        written.add_records(made)
        return made

    records.records_of = noted_records
    Driver._cut = noted  # type: ignore[method-assign]
    config.pluginmanager.register(written, "written")


def _leave_constants_out() -> None:
    """Hypothesis draws constants of the sources of loaded modules. A compiled module has no source: examples would differ."""
    # It has no setting for that.
    assert callable(providers._get_local_constants)
    providers._get_local_constants = providers.Constants
