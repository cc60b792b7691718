"""Half a minute of what production has: three brokers, hosts of their own, a network that fails, hostile input."""

from pathlib import Path

import pytest

from tests.chaos.production.network import CannotRun, Network
from tests.chaos.production.run import production
from tests.chaos.run import Options, run

#: A busy machine may take long to settle.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_200)]


@pytest.fixture(autouse=True)
def hosts() -> None:
    """Hosts need root; a machine where the tests have none says so."""
    try:
        with Network(["probe"]):
            pass
    except CannotRun as problem:
        pytest.skip(str(problem))


def test_every_view_is_right_after_half_a_minute_of_production(tmp_path: Path) -> None:
    options = Options(
        seconds=30, seed=3, views_per_second=8, session_ms=4_000, standby=True, long_views=2, hostile_share=0.05
    )
    result = run(options, tmp_path, production)
    print(result.table())
    assert result.is_right, result.table()
    assert result.truth.rejected > 20, result.table()
    assert len(result.faults) >= 3, result.table()
