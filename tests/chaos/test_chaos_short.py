"""A short chaos run with a fixed seed: every view right to the last field, through kills and stops of slots."""

from pathlib import Path

import pytest

from tests.chaos.run import Options, run

#: A busy machine may take long to settle.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_200)]


def test_every_view_is_right_after_forty_seconds_of_chaos(tmp_path: Path) -> None:
    result = run(Options(seconds=40, seed=5, views_per_second=15, session_ms=3_000), tmp_path)
    print(result.table())
    assert result.verdict.is_right, result.table()
    assert not result.ended_unexpectedly, result.table()
    assert len(result.faults) >= 6, result.table()
    assert len(result.truth.rows) > 300
