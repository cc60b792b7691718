"""SIGTERM and SIGINT as one event that a service's loop watches."""

import signal
import threading

import structlog

log = structlog.get_logger(__name__)


def stop_on_signals() -> threading.Event:
    """An event that is set by the first SIGTERM or SIGINT. Call it on the main thread."""
    stop = threading.Event()

    def handler(number: int, _frame: object) -> None:
        log.info("stopping", signal=signal.Signals(number).name)
        stop.set()

    signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGINT, handler)
    return stop
