"""The checker of linearizability, on histories of a register whose answer is known."""

import itertools
import random
from collections.abc import Sequence

import pytest

from tests.chaos.linearizability import Operation, is_linearizable


def register(state: int, operation: Operation) -> Sequence[int]:
    """A register: ("write", n) and ("read",), which answers what was written last."""
    if operation.request[0] == "write":
        return [operation.request[1]]
    return [state] if operation.reply in {state, None} else []


def write(value: int, called_at: float, returned_at: float | None) -> Operation:
    return Operation(("write", value), None, called_at, returned_at)


def read(value: int, called_at: float, returned_at: float | None) -> Operation:
    return Operation(("read",), value, called_at, returned_at)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], True),
        ([read(0, 0, 1)], True),
        ([read(1, 0, 1)], False),
        ([write(1, 0, 1), read(1, 2, 3)], True),
        ([write(1, 0, 1), read(0, 2, 3)], False),
        # While it is written both may be read, but not the former after the latter.
        ([write(1, 0, 9), read(0, 1, 2), read(1, 3, 4)], True),
        ([write(1, 0, 9), read(1, 1, 2), read(0, 3, 4)], False),
        ([write(1, 0, 9), read(1, 1, 4), read(0, 2, 5)], True),
        # Two writes at once take effect in one order for all.
        ([write(1, 0, 9), write(2, 0, 9), read(1, 1, 2), read(2, 3, 4)], True),
        ([write(1, 0, 4), write(2, 0, 4), read(1, 5, 6), read(2, 7, 8)], False),
        # Nobody knows how it ended: it may be seen late, or never, but not go away again.
        ([write(1, 0, None), read(0, 5, 6), read(1, 7, 8)], True),
        ([write(1, 0, None), read(0, 5, 6), read(0, 7, 8)], True),
        ([write(1, 0, None), read(1, 5, 6), read(0, 7, 8)], False),
        # Not before it was called.
        ([read(1, 0, 1), write(1, 2, 3)], False),
        ([read(1, 0, 1), write(1, 2, None)], False),
        # Times that touch are at once.
        ([write(1, 0, 1), read(0, 1, 2)], True),
    ],
)
def test_small_histories(history: list[Operation], expected: bool) -> None:
    for order in itertools.permutations(history):
        assert is_linearizable(order, 0, register) is expected


def happened(seed: int, operations: int, seconds: float) -> list[Operation]:
    """What clients see of a register that does each operation at one moment."""
    random_ = random.Random(seed)
    moments = sorted((random_.random() * seconds, number) for number in range(operations))
    history, value = [], 0
    for moment, number in moments:
        called_at, returned_at = moment - random_.random() * 0.1, moment + random_.random() * 0.1
        if random_.random() < 0.5:
            value = number
            history.append(write(number, called_at, None if number % 30 == 3 else returned_at))
        else:
            history.append(read(value, called_at, returned_at))
    return history


def brute(history: list[Operation]) -> bool:
    """Every order of every choice of what took effect."""
    open_ = [operation for operation in history if operation.returned_at is None]
    for number in range(len(open_) + 1):
        for never in itertools.combinations(open_, number):
            for order in itertools.permutations([one for one in history if one not in never]):
                if _is_right(order):
                    return True
    return False


def _is_right(order: tuple[Operation, ...]) -> bool:
    value = 0
    for place, operation in enumerate(order):
        if any(later.returned_at is not None and later.returned_at < operation.called_at for later in order[place:]):
            return False
        states = register(value, operation)
        if not states:
            return False
        value = states[0]
    return True


@pytest.mark.parametrize("seed", range(6))
def test_what_did_happen_is_linearizable_and_one_wrong_read_is_noticed(seed: int) -> None:
    history = happened(seed, 100, 5.0)
    assert is_linearizable(history, 0, register)
    last = max(operation.called_at for operation in history) + 100
    written = [operation.request[1] for operation in history if operation.request[0] == "write"]
    assert not is_linearizable([*history, read(max(written) + 1, last, last + 1)], 0, register)


@pytest.mark.parametrize("seed", range(40))
def test_it_says_what_trying_every_order_says(seed: int) -> None:
    random_ = random.Random(seed)
    history = happened(seed, 5, 0.2)
    for _ in range(2):
        place = random_.randrange(len(history))
        history[place] = history[place]._replace(reply=random_.randrange(6))
    assert is_linearizable(history, 0, register) is brute(history)
