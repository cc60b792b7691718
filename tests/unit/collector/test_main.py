"""The collector's process ends, with a code of its own, when it cannot go on: its producer, port or customers are gone."""

import asyncio
import threading
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
import structlog

from services.collector import program as collector
from services.collector.customers.file import CustomersFile
from services.collector.settings import CollectorSettings
from services.collector.sink.kafka_sink import KafkaSink
from tests.unit.collector.sink.test_kafka_sink import FakeProducer

SETTINGS = CollectorSettings(host="127.0.0.1", port=0, admin_host="127.0.0.1", admin_port=0, kafka_bootstrap="none:1")


@pytest.fixture
def fake_producer(monkeypatch: pytest.MonkeyPatch) -> FakeProducer:
    fake = FakeProducer({})
    monkeypatch.setattr(collector, "KafkaSink", partial(KafkaSink, producer_type=lambda *_, **__: fake))
    return fake


async def test_a_dead_producer_ends_the_process_with_a_clear_last_line(
    fake_producer: FakeProducer,
) -> None:
    fake_producer.broken = True
    with structlog.testing.capture_logs() as lines:
        code = await asyncio.wait_for(collector.serve(SETTINGS, threading.Event()), 30)
    assert code == collector.EXIT_DEAD
    assert (lines[-1]["event"], lines[-1]["log_level"]) == ("stopped_dead", "error")
    assert "poll broke" in lines[-1]["why"]


async def test_a_collector_that_gets_a_stop_signal_ends_well(fake_producer: FakeProducer) -> None:
    stop = threading.Event()
    stop.set()
    settings = SETTINGS.model_copy(update={"drain_notice_seconds": 0})
    assert await asyncio.wait_for(collector.serve(settings, stop), 30) == 0


async def test_a_collector_that_can_look_at_its_customers_no_more_ends(
    fake_producer: FakeProducer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take revoked keys for ever, and nobody would know."""
    file = tmp_path / "customers.toml"
    file.write_text("[customers.acme]")
    monkeypatch.setattr(CustomersFile, "reload_when_changed", Mock(side_effect=RuntimeError("a mistake")))
    changes = {"customers_file": str(file), "customers_seconds": 0.01, "drain_notice_seconds": 0}
    with structlog.testing.capture_logs() as lines:
        code = await asyncio.wait_for(collector.serve(SETTINGS.model_copy(update=changes), threading.Event()), 30)
    assert code == collector.EXIT_CUSTOMERS
    assert "watch_ended" in [line["event"] for line in lines]


async def test_a_port_in_use_is_reported_and_nothing_starts(fake_producer: FakeProducer) -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with server:
        taken = server.sockets[0].getsockname()[1]
        settings = SETTINGS.model_copy(update={"admin_port": taken})
        assert await asyncio.wait_for(collector.serve(settings, threading.Event()), 30) == collector.EXIT_BOOT
