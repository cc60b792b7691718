"""Remembers the death of any thread, so that the process's main loop can end the process and log the reason.

Otherwise a dead thread would leave a process that looks healthy and does only a part of its work.
"""

import threading

import structlog

log = structlog.get_logger(__name__)


class ThreadDied(RuntimeError):
    """A thread of this process died of an exception; the text says which, and of what."""


class Threads:
    """Watches all threads of this process, from `watch` on."""

    def __init__(self) -> None:
        self._died: str | None = None

    def watch(self) -> None:
        """Begins. What a thread raises is logged here in place of the interpreter's own words."""
        threading.excepthook = self._note

    def check(self) -> None:
        """Raises `ThreadDied` when a thread has died since."""
        if self._died is not None:
            raise ThreadDied(self._died)

    def _note(self, died: threading.ExceptHookArgs) -> None:
        name = died.thread.name if died.thread is not None else "?"
        cause = f"thread {name} died: {died.exc_type.__name__}: {died.exc_value}"
        log.error("thread_died", thread=name, error=cause, exc_info=died.exc_value)
        # The first is the cause, as far as there is one.
        self._died = self._died or cause
