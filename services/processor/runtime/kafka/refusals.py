"""The errors that end a slot, and the errors by which Kafka refuses a request until an operator grants the right."""

import time
from typing import Final

import structlog
from confluent_kafka import KafkaError

log = structlog.get_logger(__name__)

#: Rights and settings: the broker is there, and says no.
REFUSED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.INVALID_SESSION_TIMEOUT,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.POLICY_VIOLATION,
    }
)


class WorkerFailed(RuntimeError):
    """The slot cannot go on; the text says why. Its partitions are safe: the next owner goes on from the last commit."""


class InputGone(WorkerFailed):
    """The offset from which an input is to be read does not exist any more."""


class SlotFenced(WorkerFailed):
    """Another process has joined the group under this slot's id: the slot is its now."""


class KafkaRefused(WorkerFailed):
    """Kafka will not have it, and trying again would go on for ever."""


class Refusals:
    """What is being refused to one client, and since when; borne for `seconds_max`."""

    def __init__(self, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self._since: dict[str, tuple[float, str]] = {}

    def note(self, what: str, error: KafkaError) -> None:
        """An error of `what`: a refusal begins, or continues. Raises `KafkaRefused` when it has lasted too long."""
        if error.code() in REFUSED:
            self._since.setdefault(what, (time.monotonic(), f"{error.name()}: {error.str()}"))
            log.warning("refused", what=what, code=error.name(), error=error.str())
        self.check()

    def clear(self, what: str) -> None:
        """It is granted."""
        self._since.pop(what, None)

    def forget(self) -> None:
        """Everything is asked for again."""
        self._since.clear()

    def check(self) -> None:
        """Raises `KafkaRefused` when something was refused for too long: the client reports it once only."""
        for what, (since, reason) in self._since.items():
            if time.monotonic() - since >= self._seconds_max:
                raise KafkaRefused(
                    f"Kafka has refused {what} for {self._seconds_max:.0f} s: {reason}. Grant it, or mend the settings."
                )
