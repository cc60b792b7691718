"""What came of an attempt at a message."""

from typing import Final, NamedTuple


class Outcome(NamedTuple):
    """What came of an attempt: None where the receiver has the message."""

    problem: str | None
    #: Whether another attempt may do better.
    may_pass: bool = True


SENT: Final = Outcome(None)
