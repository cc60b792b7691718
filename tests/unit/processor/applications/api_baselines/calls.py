"""Calls of an API for stories, window by window, and what a driver made of them."""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from services.processor.applications.api_baselines.app import application
from services.processor.applications.api_baselines.settings import BaselineRules
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.api.formats import path_of
from shared.partitioning import api_key
from shared.schemas.apis.anomaly import ApiAnomaly
from shared.schemas.apis.call import ApiCall
from shared.schemas.apis.window import ApiWindow

#: Monday, 00:00 UTC.
T0 = 1_790_553_600_000
WINDOW_MS = 60_000
GRACE_MS = 5_000
HOST = "api.example"
KEY = api_key("acme", HOST)
RULES = BaselineRules(
    window_ms=WINDOW_MS,
    grace_ms=GRACE_MS,
    usual_windows_min=8,
    usual_windows_max=20,
    closing_windows=2,
    anomaly_ms_max=20 * WINDOW_MS,
    kept_ms=60 * WINDOW_MS,
    endpoints_max=60,
)
APPLICATION = application(RULES)


def call(ended_ms: int, path: str = "/users/1", *, ms: int | None = 100, status: int = 200) -> ApiCall:
    """A call that ended so many ms after T0."""
    parts = path_of(path)
    assert parts is not None
    return ApiCall(
        schema_version=1,
        customer_id="acme",
        host=HOST,
        method="GET",
        path=parts,
        status=status,
        at_ms=T0 + ended_ms - (ms or 0),
        duration_us=None if ms is None else ms * 1000,
        source="native",
    )


@dataclass(frozen=True)
class Load:
    """How an endpoint is called in a window."""

    calls: int = 40
    ms: int = 100
    errors: int = 0
    status: int = 500
    path: str = "/users/1"


def window_of(number: int, load: Load) -> Iterator[ApiCall]:
    """The calls of the window of this number, in order; durations differ by a few percent, the same in each window."""
    for place in range(load.calls):
        ended_ms = number * WINDOW_MS + (place + 1) * (WINDOW_MS - 1) // (load.calls + 1)
        status = load.status if place < load.errors else 200
        yield call(ended_ms, load.path, ms=load.ms + place % 7, status=status)


def windows(*loads: Load | None, first: int = 0) -> list[ApiCall]:
    """One window after the other; None is one without calls."""
    return [one for number, load in enumerate(loads, first) if load is not None for one in window_of(number, load)]


def records(calls: Iterable[ApiCall], *, came_ms: int | None = None) -> Iterator[tuple[Any, bytes, bytes, int]]:
    """Records as the driver takes them: each comes when its call ends, or all at one time after T0."""
    for one in calls:
        ended_ms = one.at_ms + (one.duration_us or 0) // 1000
        key = api_key(one.customer_id, one.host)
        yield topics.API_CALLS, key, codec.API_CALL.encode(one), ended_ms if came_ms is None else T0 + came_ms


def pipe(driver: Driver, calls: Iterable[ApiCall], *, came_ms: int | None = None, commit_every: int = 50) -> None:
    driver.pipe_all(records(calls, came_ms=came_ms), commit_every=commit_every)


def close(driver: Driver, number: int) -> None:
    """Lets the clock run until all windows before this one are closed."""
    driver.advance_to(T0 + number * WINDOW_MS + GRACE_MS)


def anomalies(driver: Driver) -> list[ApiAnomaly]:
    return [codec.API_ANOMALY.decode(output.value) for output in driver.outputs(topics.API_ANOMALIES)]


def brief(driver: Driver) -> list[tuple[str, int, str, str | None]]:
    """Measure, revision, state and end of every revision that was written."""
    return [(one.measure, one.revision, one.state, one.end_reason) for one in anomalies(driver)]


def rows(driver: Driver) -> list[ApiWindow]:
    return [codec.API_WINDOW.decode(output.value) for output in driver.outputs(topics.API_WINDOWS)]


def document(driver: Driver) -> dict[str, Any]:
    """What the lookup answers."""
    (lookup,) = APPLICATION.lookups
    ((key, subject),) = lookup.candidates_of({"host": HOST.upper(), "customer": "acme"})
    assert key == KEY
    found = driver.look(lookup, subject)
    assert found is not None
    answer: dict[str, Any] = json.loads(found)
    return answer


def jittered(count: int, seed: int) -> list[Load]:
    """Loads of usual windows that differ by chance."""
    random_ = random.Random(seed)
    return [Load(calls=random_.randint(34, 46), ms=random_.randint(95, 105)) for _ in range(count)]
