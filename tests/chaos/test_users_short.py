"""A short chaos run of `users`: through kills and pauses of slots, clients get the answers of one table."""

from pathlib import Path

import pytest

from tests.chaos.users import Options, run

#: A busy machine may take long to settle.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_200)]


def test_answers_to_clients_are_linearizable_through_kills_and_pauses(tmp_path: Path) -> None:
    result = run(Options(seconds=25, seed=3), tmp_path)
    print(result.table())
    assert not result.wrong, result.table()
    assert sum(result.faults.values()) >= 2, result.table()
    assert result.operations > 50, result.table()
