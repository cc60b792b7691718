"""Structured logs: one JSON object per line in services, coloured text in a terminal."""

import logging
import sys
from typing import TextIO

import structlog

from services.rim.telemetry import tracing
from shared.settings import Settings


def configure(service: str, settings: Settings) -> None:
    """Sets up structlog, and the standard library's loggers through it, for this process. Logs go to stderr."""
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if settings.trace_share:
        processors.insert(0, tracing.correlate)
    if settings.log_format == "json":
        renderer: list[structlog.typing.Processor] = [
            # Never with local variables: settings and their secrets are among them.
            structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
        ]
    else:
        renderer = [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    structlog.configure(
        processors=[*processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = _Handler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
            foreign_pre_chain=processors,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    structlog.contextvars.bind_contextvars(service=service)


def only(name: str) -> None:
    """From now on this logger alone is heard: a process that ends says why in its last line, though its threads still work."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Handler):
            handler.heard = name


class _Handler(logging.StreamHandler[TextIO]):
    """Writes lines of all loggers, or of one."""

    heard: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        # Here and in no filter: the handler is locked, so that no line which was let through before comes after the last one.
        if self.heard in (None, record.name):
            super().emit(record)
