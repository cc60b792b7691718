"""The process: what it could not do is in its exit code and its last line."""

import errno
import socket
import threading
from pathlib import Path

import pytest
import structlog

from services.query import __main__ as query


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The environment of a service that finds nobody."""
    given = {
        "QUERY_POSTGRES_DSN": "postgresql://nobody@127.0.0.1:1/none",
        "QUERY_WAREHOUSE_DIR": str(tmp_path),
        "QUERY_EXPORTS_DIR": str(tmp_path / "exports"),
        "QUERY_PORT": "0",
        "QUERY_ADMIN_PORT": "0",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(query, "stop_on_signals", threading.Event)
    for module in (query.logs, query.certificates, query.metrics):
        for name in ("configure", "watch", "declare"):
            monkeypatch.setattr(module, name, lambda *_, **__: None, raising=False)
    return monkeypatch


def test_a_port_that_is_taken_is_said(settings: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, structlog.testing.capture_logs() as said:
        settings.setenv("QUERY_PORT", str(taken.getsockname()[1]))
        assert query.main() == query.EXIT_BOOT
    assert [one["event"] for one in said] == ["cannot_listen"]


async def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_else_the_system_refuses_is_no_port(settings: pytest.MonkeyPatch) -> None:
    settings.setattr(query.Exporting, "keep", _full)
    with structlog.testing.capture_logs() as said:
        assert query.main() == query.EXIT_DIED
    assert said[-1]["event"] == "died"
    assert "cannot_listen" not in {one["event"] for one in said}
