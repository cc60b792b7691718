"""What is logged while a broker is away: bounded for any number of clients."""

import logging
import socket

import pytest
from confluent_kafka import KafkaError, Producer
from structlog.testing import capture_logs

from deploy.local.process import wait_until
from services.rim.kafka import outages
from services.rim.kafka.connection import client_config, log_client_error
from services.rim.kafka.outages import (
    FORGET_SECONDS,
    QUIET_SECONDS,
    TELL_SECONDS,
    Outages,
    Watch,
    address_of,
    takes_connections,
)
from shared.settings import Settings

REFUSED = "[thrd:one:9092/bootstrap]: one:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused"
ONE = ("one", 9092)
SECONDS_MAX = 120.0


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("one:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: refused", ("one", 9092)),
        ("sasl_ssl://kafka-1.example:9093/2: SASL authentication error", ("kafka-1.example", 9093)),
        ("GroupCoordinator: 127.0.0.1:19092: Disconnected", ("127.0.0.1", 19092)),
        ("ssl://[::1]:9092/1: Connect failed", ("::1", 9092)),
        ("3/3 brokers are down", ("", 0)),
    ],
)
def test_a_line_names_its_broker(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


def test_an_outage_of_a_minute_has_a_line_at_its_beginning_one_each_ten_seconds_and_one_at_its_end() -> None:
    outages = Outages()
    with capture_logs() as lines:
        now = 1_000.0
        for tick in range(60 * 20):
            now = 1_000.0 + tick / 20
            outages.failed(REFUSED, now)
            outages.look(now, [])
        assert outages.quiet(now) == []
        outages.look(now + QUIET_SECONDS, outages.quiet(now + QUIET_SECONDS))
    assert [line["event"] for line in lines] == ["kafka_away", *["kafka_still_away"] * 5, "kafka_back"]
    assert {line["broker"] for line in lines} == {"one:9092"}
    assert lines[0]["error"] == REFUSED.removeprefix("[thrd:one:9092/bootstrap]: ")
    assert lines[1]["failures"] == TELL_SECONDS * 20
    assert (lines[-1]["failures"], lines[-1]["seconds"]) == (1_200, 60.0)
    assert outages.is_calm


def test_a_broker_that_takes_connections_and_refuses_them_then_is_not_back() -> None:
    outages = Outages()
    with capture_logs() as lines:
        for second in range(30):
            outages.failed(REFUSED, float(second))
            outages.look(float(second), {ONE})
    assert [line["event"] for line in lines] == ["kafka_away", "kafka_still_away", "kafka_still_away"]


def test_each_broker_has_its_own_lines_and_one_that_nobody_tries_any_more_is_forgotten() -> None:
    outages = Outages()
    with capture_logs() as lines:
        outages.failed(REFUSED, 0.0)
        outages.failed(REFUSED.replace("one:", "two:"), 1.0)
        outages.look(QUIET_SECONDS + 1, {("two", 9092)})
        outages.look(FORGET_SECONDS, [])
    logged = [(line["event"], line["broker"]) for line in lines]
    assert logged == [
        ("kafka_away", "one:9092"),
        ("kafka_away", "two:9092"),
        ("kafka_back", "two:9092"),
        ("kafka_not_tried", "one:9092"),
    ]
    assert outages.is_calm


def test_only_lines_on_failed_connections_are_taken_out_of_the_clients_log(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch()
    monkeypatch.setattr(watch, "failed", lambda _: None)

    def record(*arguments: object) -> logging.LogRecord:
        return logging.LogRecord("librdkafka", logging.ERROR, "", 0, "%s [%s] %s", arguments, None)

    assert watch.filter(record("MAXPOLL", "rdkafka#consumer-1", "left the group"))
    assert not watch.filter(record("FAIL", "rdkafka#consumer-1", REFUSED))


def test_a_callback_gets_what_the_log_does_not() -> None:
    callback = log_client_error("consumer")
    with capture_logs() as lines:
        callback(KafkaError(KafkaError._TRANSPORT, "refused"))
        callback(KafkaError(KafkaError._ALL_BROKERS_DOWN, "3/3 brokers are down"))
        callback(KafkaError(KafkaError._TRANSPORT, "never again", True))
        callback(KafkaError(KafkaError._MAX_POLL_EXCEEDED, "left the group"))
    assert [line["error"] for line in lines] == ["never again", "left the group"]


def test_real_clients_of_a_broker_that_is_away_and_comes_back_log_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "QUIET_SECONDS", 0.0)
    with socket.socket() as place:
        # Bound and not listening: connections are refused, and nobody else takes the port.
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
        assert not takes_connections(("127.0.0.1", port))
        settings = Settings(kafka_bootstrap=f"127.0.0.1:{port}")
        with capture_logs() as lines:
            clients = [
                Producer({**client_config(settings, f"test-{number}"), "error_cb": log_client_error("test")})
                for number in range(3)
            ]

            def is_logged(event: str) -> bool:
                for client in clients:
                    client.poll(0.01)
                return any(line["event"] == event for line in lines)

            wait_until(lambda: is_logged("kafka_away"), SECONDS_MAX, "the outage is logged")
            place.listen()
            wait_until(lambda: is_logged("kafka_back"), SECONDS_MAX, "the end of the outage is logged")
        assert {line["broker"] for line in lines} == {f"127.0.0.1:{port}"}
        # On a slow machine the outage may last more than ten seconds.
        events = [line["event"] for line in lines if line["event"] != "kafka_still_away"]
        assert events[:2] == ["kafka_away", "kafka_back"]
