"""Whether a history of concurrent operations on one object is linearizable: Wing and Gong's search, with memory.

Every operation must seem to take effect at one moment between its call and its answer. The search takes, again and again, one
operation that no unfinished search step forbids (none answered before it was called), and goes back where the object would not
have answered so. What was taken, as a set, and the object's state then are remembered, so nothing is searched twice.

Sources: J. M. Wing and C. Gong, Testing and verifying concurrent objects, JPDC 17, 1993; the memory is G. Lowe's, Testing for
linearizability, Concurrency and Computation 29, 2017.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Operation(NamedTuple):
    """One operation: its request and its reply, with the times of both on one clock.

    `returned_at` None: nobody knows how it ended; it may take effect at any time after its call, or never.
    """

    request: Any
    reply: Any
    called_at: float
    returned_at: float | None


#: The states that the object may be in after an operation; none where it would not have answered so.
Model = Callable[[S, Operation], Sequence[S]]


def is_linearizable(history: Sequence[Operation], initial: S, model: Model[S]) -> bool:
    """Whether the operations, in some order that keeps their times, are what the object of this model would have done."""
    operations = sorted(history, key=lambda operation: operation.called_at)
    whole = sum(1 << place for place, operation in enumerate(operations) if operation.returned_at is not None)
    seen: set[tuple[int, S]] = set()
    left = [(0, initial)]
    while left:
        taken, state = left.pop()
        if taken & whole == whole:
            return True
        if (taken, state) in seen:
            continue
        seen.add((taken, state))
        for place in _candidates(operations, taken):
            left += [(taken | 1 << place, after) for after in model(state, operations[place])]
    return False


def _candidates(operations: Sequence[Operation], taken: int) -> list[int]:
    """Which may be next: those not taken that were called before any other of them was answered."""
    found: list[int] = []
    first_return = float("inf")
    for place, operation in enumerate(operations):
        if operation.called_at > first_return:
            break
        if taken >> place & 1:
            continue
        found.append(place)
        if operation.returned_at is not None:
            first_return = min(first_return, operation.returned_at)
    # Some were called after one that is answered earlier than those before it.
    return [place for place in found if operations[place].called_at <= first_return]
