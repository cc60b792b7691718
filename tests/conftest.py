"""What all tests share: Hypothesis without deadlines, and how to run for longer than every change can wait.

`--hypothesis-profile many` searches 10,000 cases; `--outage-seconds 30` keeps the broker away for so long.
"""

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("many", deadline=None, max_examples=10_000)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outage-seconds", type=float, default=3.0, help="how long a broker is away that comes back")


@pytest.fixture
def outage_seconds(request: pytest.FixtureRequest) -> float:
    seconds: float = request.config.getoption("--outage-seconds")
    return seconds
