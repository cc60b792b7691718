"""The part of `api_baselines`: some usual windows of an API, then two in which it is slow and fails, then usual ones."""

import random
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from deploy.demo.applications.part import Part, Running, line
from deploy.demo.comparing.compare import Line
from services.processor.applications.api_baselines.settings import BaselineRules

_HOUR_MS: Final = 3_600_000
HOST: Final = "baselines.demo"
WINDOW_MS: Final = 1_000
CALLS: Final = 40
USUAL: Final = 14
UNUSUAL: Final = 2
#: Usual windows after that: enough to close an anomaly.
AFTER: Final = 4
WINDOWS: Final = USUAL + UNUSUAL + AFTER


def play(running: Running) -> Sequence[Line]:
    """Sends the calls of past seconds, one window after the other, and compares windows and anomalies with them."""
    chance = random.Random(7)
    first_ms = first_window_ms(time.time_ns() // 1_000_000, WINDOWS)
    for number in range(WINDOWS):
        running.post("/v1/api-calls", msgspec.json.encode({"calls": _window(first_ms, number, chance)}))

    def anomalies() -> list[dict[str, Any]]:
        # Traffic is another matter: after the last call it ends.
        return running.rows("api_anomalies", "*", f"host = '{HOST}' AND measure <> 'traffic'")

    def windows() -> list[dict[str, Any]]:
        return running.rows("api_windows", "calls, state", f"host = '{HOST}'")

    running.until(lambda: [one["state"] for one in anomalies()] == ["closed"] * 2 and len(windows()) == WINDOWS)
    found = sorted(anomalies(), key=lambda one: str(one["measure"]))
    for one in found:
        worst = one["worst"]
        running.say(
            f"  {one['measure']} of {one['method']} {one['path']}: {worst['figure']} {worst['value']:,.4g},"
            f" usually {worst['usual']:,.4g}, z-score {worst['score']:.1f}, for {one['windows']} windows"
        )
    answer = running.found(f"/apis/{HOST}/baselines")
    return [
        line("api_baselines: windows in the warehouse", len(windows()), WINDOWS),
        line("api_baselines: calls in them", sum(one["calls"] for one in windows()), WINDOWS * CALLS),
        line("api_baselines: anomalies", ", ".join(one["measure"] for one in found), "latency, server_errors"),
        line("api_baselines: windows they lasted", [one["windows"] for one in found], [UNUSUAL] * 2),
        line("api_baselines: closed", [one["state"] for one in found], ["closed"] * 2),
        line("api_baselines: endpoints in a lookup", 0 if answer is None else len(answer["endpoints"]), 1),
    ]


def first_window_ms(now_ms: int, windows: int) -> int:
    """When so many windows of a second began that are over by now and of one hour: each hour has its own baseline."""
    last_ms = now_ms // WINDOW_MS * WINDOW_MS
    hour_ms = last_ms // _HOUR_MS * _HOUR_MS
    return (last_ms if last_ms - hour_ms >= windows * WINDOW_MS else hour_ms) - windows * WINDOW_MS


def _window(first_ms: int, number: int, chance: random.Random) -> list[dict[str, Any]]:
    is_usual = not USUAL <= number < USUAL + UNUSUAL
    calls = []
    for place in range(CALLS):
        ms = chance.randint(90, 110) * (1 if is_usual else 5)
        ended_ms = first_ms + number * WINDOW_MS + place * (WINDOW_MS // CALLS)
        calls.append(
            {
                "method": "GET",
                "host": HOST,
                "path": f"/carts/{place}",
                "status": 200 if is_usual or place % 2 else 503,
                "time_ms": ended_ms - ms,
                "duration_us": ms * 1_000,
            }
        )
    return calls


PART: Final = Part(
    "api_baselines",
    play,
    {
        BaselineRules.variable("window_ms"): str(WINDOW_MS),
        BaselineRules.variable("grace_ms"): "2000",
        BaselineRules.variable("silence_ms"): "0",
        BaselineRules.variable("usual_windows_min"): "8",
    },
)
