"""What all tests share: Hypothesis without deadlines, and how to run for longer than every change can wait.

`--hypothesis-profile many` searches 10,000 cases, `quick` 8, `same` the same 8 each time, and what continuous integration runs
100. `--quick` is what `make unit` runs (`tests/suite/quick.py`).
`--outage-seconds 300` keeps the broker away for so long.
"""

import gc
import os
import sys
from operator import itemgetter
from typing import Any, Final

import pytest
import structlog
from hypothesis import settings
from xdist.scheduler import Scheduling

from deploy.local import class_archives, process
from deploy.local.ports import PORT_MAX, PORT_MIN, RANGE_VARIABLE
from services.rim.process import compiled
from tests.suite import anchors, cpu_shares, deferred, prefork, quick, scheduling

deferred.defer()
anchors.find_once()
# Processes by the hundred import the same modules: what Python compiled is kept, here and in all that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
#: What is imported and collected is never garbage: neither while it is made nor when later garbage is collected.
gc.disable()
# Errors that tests provoke are logged as services log them: structlog's own default draws a frame with colours around each.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)
#: Chosen before any test imports the fold: `make unit COMPILED=1` tests the compiled one.
BUILD: Final = compiled.choose("processor", os.environ)

_RUN: Final = pytest.StashKey[prefork.Run]()

settings.register_profile("default", deadline=None)
settings.register_profile(quick.PROFILE, deadline=None, max_examples=8)
settings.register_profile("many", deadline=None, max_examples=10_000)
settings.register_profile("same", deadline=None, max_examples=8, derandomize=True, database=None)
settings.load_profile("default")


def pytest_configure(config: pytest.Config) -> None:
    """Gives each worker of a parallel run ports and a share of the cores of its own, and so every process that it starts.

    Services start as forks of processes that have imported them, JVMs from archives of classes.
    """
    if os.environ.get("PROCESSOR_COMPILED") == "required" and not BUILD.is_compiled:
        raise pytest.UsageError(f"PROCESSOR_COMPILED=required: {BUILD.reason}")
    if config.getoption(quick.OPTION):
        settings.load_profile(quick.PROFILE)
    config.stash[_RUN] = prefork.Run()
    process.launch = prefork.start
    os.environ[class_archives.VARIABLE] = "1"
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        count = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        width = (PORT_MAX - PORT_MIN) // count
        lowest = PORT_MIN + int(worker.removeprefix("gw")) * width
        os.environ[RANGE_VARIABLE] = f"{lowest}-{lowest + width - 1}"
        cpu_shares.register(config)
    elif getattr(config.option, "numprocesses", None):
        cpu_shares.begin()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Packed bytes name no test: gzip writes the second into them, and parallel workers must find the same names."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest first. Of a quick run, those that it runs."""
    if config.getoption(quick.OPTION):
        items[:], left_out = quick.chosen(items)
        config.hook.pytest_deselected(items=left_out)
    keys = scheduling.keys([item.nodeid for item in items])
    items[:] = [item for _, item in sorted(zip(keys, items, strict=True), key=itemgetter(0))]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """From here on garbage is collected, also where others run the tests."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """What was kept out of collections goes, too: else DuckDB's binding reports all its types as leaked when the process ends."""
    gc.unfreeze()
    if _RUN in config.stash:
        config.stash[_RUN].end()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """Groups of tests in place of files, where files are what was asked for."""
    return scheduling.ByGroup(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        quick.OPTION, action="store_true", help="what `make unit` runs: no thorough tests, few cases of each"
    )
    parser.addoption("--outage-seconds", type=float, default=30.0, help="how long a broker is away that comes back")


@pytest.fixture
def outage_seconds(request: pytest.FixtureRequest) -> float:
    seconds: float = request.config.getoption("--outage-seconds")
    return seconds
