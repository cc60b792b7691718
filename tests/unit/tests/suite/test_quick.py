"""Which tests `make unit` leaves to `make test`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from tests.suite import quick


@dataclass(frozen=True)
class Item:
    """A test as pytest collects it, as far as the choice looks at it."""

    nodeid: str
    mark: str = ""

    def get_closest_marker(self, name: str) -> str | None:
        return self.mark if self.mark == name else None


def chosen(*items: Item) -> tuple[list[str], list[str]]:
    kept, left_out = quick.chosen(cast(Sequence[pytest.Item], items))
    return [one.nodeid for one in kept], [one.nodeid for one in left_out]


def test_thorough_tests_are_left_out_and_the_others_keep_their_order() -> None:
    items = (Item("a.py::test_b"), Item("a.py::test_a", "thorough"), Item("b.py::test_a", "integration"))
    assert chosen(*items) == (["a.py::test_b", "b.py::test_a"], ["a.py::test_a"])


def test_of_many_cases_few_are_run_the_first_and_the_last_among_them() -> None:
    cases = [Item(f"a.py::test_a[{number}]") for number in range(10)]
    kept, left_out = chosen(*cases, Item("a.py::test_b[0]"))
    assert kept == [*(f"a.py::test_a[{number}]" for number in (0, 3, 6, 9)), "a.py::test_b[0]"]
    assert len(left_out) == 6


def test_few_cases_are_all_run() -> None:
    assert [quick.spread(range(count), 4) for count in range(5)] == [list(range(count)) for count in range(5)]
