"""`RetryLater`: why a request is not taken now, and when to try again."""

from typing import Literal

#: `slow`: the body did not come in time. `gone`: the client closed the connection. `busy`: too many bytes in flight, or too many
#: slow bodies. `limited`: more than its customer's rate, or its address's. `unstored`: the sink does not have it, or its outcome is
#: unknown.
RetryReason = Literal["slow", "gone", "busy", "limited", "unstored"]


class RetryLater(RuntimeError):
    """The request is not stored, or the outcome is unknown. `wait_seconds`: when to try again, if known."""

    def __init__(self, kind: RetryReason, wait_seconds: float = 0.0) -> None:
        super().__init__(kind)
        self.kind: RetryReason = kind
        self.wait_seconds = wait_seconds
