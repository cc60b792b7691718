"""Logs an unreachable broker: a line when it becomes unreachable, a count every ten seconds, a line when it is back.

Every Kafka client of a process reports every failed connection, in its log and by a callback, many times a second.
"""

import logging
import re
import socket
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import structlog

log = structlog.get_logger(__name__)

TELL_SECONDS: Final = 10.0
#: A broker that takes connections again is back once none has failed for so long: one that refuses a login takes them too.
QUIET_SECONDS: Final = 5.0
#: A broker that no client has tried for so long is not used any more. Clients give up a silent address after 30 s.
FORGET_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 1.0
_CONNECT_SECONDS_MAX: Final = 1.0

_THREAD: Final = re.compile(r"^\[thrd:[^\]]*\]: ")
#: As in `sasl_ssl://kafka-1:9092/bootstrap: Connect to …`.
_ADDRESS: Final = re.compile(r"([^\s/:\[\]#]+|\[[0-9a-fA-F:]+\]):(\d{1,5})\b")
#: librdkafka's facility of a line on a connection that failed (rdkafka_broker.c).
_FACILITY: Final = "FAIL"

Address = tuple[str, int]


@dataclass
class _Outage:
    since: float
    error: str
    last_at: float
    logged_at: float
    #: Connections that failed, in all and since the last line.
    failures: int = 1
    untold: int = 0


class Outages:
    """The brokers that cannot be reached now. Time is an argument, seconds of a monotonic clock; not safe for threads."""

    def __init__(self) -> None:
        self._open: dict[Address, _Outage] = {}

    @property
    def is_calm(self) -> bool:
        """Whether every broker that was ever tried is reached."""
        return not self._open

    def failed(self, text: str, now: float) -> None:
        """A connection failed; `text` is librdkafka's line on it."""
        error = _THREAD.sub("", text)
        address = address_of(error)
        outage = self._open.get(address)
        if outage is None:
            self._open[address] = _Outage(now, error, now, now)
            log.warning("kafka_away", broker=_name(address), error=error)
            return
        outage.failures += 1
        outage.untold += 1
        outage.last_at, outage.error = now, error

    def quiet(self, now: float) -> list[Address]:
        """Those without a failed connection for a while: they may be back."""
        return [address for address, outage in self._open.items() if now - outage.last_at >= QUIET_SECONDS]

    def look(self, now: float, reached: Collection[Address]) -> None:
        """Call it about once a second while a broker is unreachable. `reached`: the quiet brokers that accept connections."""
        for address, outage in list(self._open.items()):
            broker, seconds = _name(address), round(now - outage.since, 1)
            quiet = now - outage.last_at
            if quiet >= QUIET_SECONDS and address in reached:
                away = round(outage.last_at - outage.since, 1)
                log.info("kafka_back", broker=broker, seconds=away, failures=outage.failures)
                del self._open[address]
            elif quiet >= FORGET_SECONDS:
                log.info("kafka_not_tried", broker=broker, seconds=seconds, failures=outage.failures)
                del self._open[address]
            elif outage.untold and now - outage.logged_at >= TELL_SECONDS:
                log.warning(
                    "kafka_still_away", broker=broker, seconds=seconds, failures=outage.untold, error=outage.error
                )
                outage.logged_at, outage.untold = now, 0


class Watch(logging.Filter):
    """Takes the lines on failed connections out of librdkafka's log; while there is an outage, a thread looks after it."""

    def __init__(self) -> None:
        super().__init__()
        self._outages = Outages()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is to be logged as it is."""
        arguments = record.args
        if not (isinstance(arguments, tuple) and len(arguments) == 3 and arguments[0] == _FACILITY):
            return True
        self.failed(str(arguments[2]))
        return False

    def failed(self, text: str) -> None:
        """A connection failed. Any thread."""
        with self._lock:
            self._outages.failed(text, time.monotonic())
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="kafka-outages", daemon=True)
                self._thread.start()

    def _look(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                quiet = self._outages.quiet(time.monotonic())
            # Clients' threads wait for the lock: never during a request to a broker.
            reached = {address for address in quiet if takes_connections(address)}
            with self._lock:
                self._outages.look(time.monotonic(), reached)
                if self._outages.is_calm:
                    self._thread = None
                    return


def address_of(text: str) -> Address:
    """The broker that a line of librdkafka is about; port 0 where it names none."""
    found = _ADDRESS.search(text)
    return (found[1].strip("[]"), int(found[2])) if found else ("", 0)


def takes_connections(address: Address) -> bool:
    """Whether a process listens at the address; True if the address has no port, since it cannot be tried."""
    if not address[1]:
        return True
    try:
        with socket.create_connection(address, timeout=_CONNECT_SECONDS_MAX):
            return True
    except OSError:
        return False


def _name(address: Address) -> str:
    return f"{address[0]}:{address[1]}" if address[1] else "unnamed"
