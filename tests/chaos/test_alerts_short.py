"""A short chaos run of alerts: through kills of slots, notifications, Postgres and the broker, each change is notified once."""

from pathlib import Path

import pytest

from tests.chaos.alerts import FAULTS, Options, run

#: A busy machine may take long to settle.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_200)]


def test_each_change_is_notified_once_and_in_order_through_kills_of_every_part(tmp_path: Path) -> None:
    result = run(Options(rounds=1, seed=4), tmp_path)
    print(result.table())
    assert not result.wrong, result.table()
    assert result.faults.keys() == set(FAULTS)
    assert (result.incidents, result.changes, result.messages) == (12, 24, 48)
