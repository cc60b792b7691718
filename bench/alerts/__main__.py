"""Alerts on traffic with matches, ad breaks and deploys: `python -m bench.alerts [--environments N] [--incidents N]`.

Each environment learns for two weeks; the third is judged. No incident is in them: every alert is false. From moments anywhere in
that week on, each incident is tried by itself: twice the rebuffering, with 500 viewers, in the environment as it is by then. The
core of the application takes buckets as it takes them from topic `live`, so the figures are those of its rules; what the way to a
receiver takes besides is assumed, and added (`--way`, ms): it is not measured here. The detector's constants were chosen on the
seeds of `--tuning`; the figures that are kept are of seeds that were not looked at for that. Beside it, on the same buckets: a
fixed threshold and an EWMA chart, each with the limit that gave no more than one false alert in the two weeks before.
"""

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from numpy.random import default_rng

from bench.alerts.detectors import REBUFFERING, RULES, Detector, Ewma, FixedThreshold, Playhead
from bench.alerts.traffic import T0, Calendar, Incident, Kind, buckets
from bench.report.results import Compared, Part, keep, table
from deploy.demo.comparing.compare import nearest_rank
from shared.schemas.live import BUCKET_MS

_DAY_MS: Final = 86_400_000
LEARNED_DAYS: Final = 14
JUDGED_DAYS: Final = 7
VIEWERS: Final = 500
#: Before an incident, and after its begin, ms.
_BEFORE_MS: Final = 600_000
_AFTER_MS: Final = 300_000
KINDS: Final = tuple(Kind(f"{share:.0%} rebuffer", VIEWERS, share) for share in (0.01, 0.03, 0.06))
#: The one whose figures have goals.
GOAL_KIND: Final = KINDS[1]
_FIXED: Final = (1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
_EWMA: Final = (4.0, 5.0, 6.0, 7.0, 8.0, 10.0)
GOAL_SECONDS: Final = (30.0, 60.0)
#: First seeds: for choosing the detector's constants, and for figures. Environments follow each other from there.
TUNING_SEED: Final = 11
HELD_OUT_SEED: Final = 2_001
#: Whose false alerts are counted apart, by the day on which each ends. The last is the one that has a goal.
PERIODS: Final = {
    "first day": 1,
    "rest of the first week": 7,
    "second week": LEARNED_DAYS,
    "judged week": LEARNED_DAYS + JUDGED_DAYS,
}
JUDGED: Final = "judged week"


@dataclass
class Found:
    """What came of one environment."""

    kind: str
    windows: int = 0
    #: By period, then rule (in the judged week also by peer).
    false: dict[str, dict[str, int]] = field(default_factory=dict)
    #: By detector, seconds from the first bad moment to the bucket that alerts; None: not found.
    delays: dict[str, list[float | None]] = field(default_factory=dict)


def environment(kind: Kind, seed: int, incidents: int) -> Found:
    """Learns, is judged, and meets its incidents."""
    rng = default_rng(seed)
    calendar = Calendar(rng, (LEARNED_DAYS + JUDGED_DAYS) // 7 + 1)
    playhead, found = Playhead(), Found(kind.name)
    fixed = {limit: FixedThreshold(kind.rebuffering * limit) for limit in _FIXED}
    ewma = {limit: Ewma(limit) for limit in _EWMA}
    learned_ms, end_ms = LEARNED_DAYS * _DAY_MS, (LEARNED_DAYS + JUDGED_DAYS) * _DAY_MS
    counts: dict[str, dict[float, list[int]]] = {"fixed": {}, "ewma": {}}
    makers = _makers(playhead, kind, calendar, seed, counts)
    found.delays = {name: [] for name in makers}
    moments = _moments(seed, incidents, learned_ms, end_ms)
    for closed in buckets(kind, calendar, rng, 0, end_ms):
        at_ms = closed.start_ms - T0
        is_judged = at_ms >= learned_ms
        while moments and moments[0] <= at_ms:
            moments.pop(0)
            number = seed * 100_000 + len(moments)
            for name, delay in _incident(kind, calendar, number, at_ms, makers).items():
                found.delays[name].append(delay)
        playhead.take(closed)
        for name, several in (("fixed", fixed), ("ewma", ewma)):
            for limit, one in several.items():
                counts[name].setdefault(limit, [0, 0])[is_judged] += one.take(closed)
        for period in [one for one, days in PERIODS.items() if at_ms + BUCKET_MS == days * _DAY_MS]:
            found.false[period] = {rule.id: playhead.opened.pop(rule.id, 0) for rule in RULES}
    found.windows = JUDGED_DAYS * _DAY_MS // BUCKET_MS * sum(3 if rule.by else 1 for rule in RULES)
    found.false[JUDGED] |= {f"peer {name}": limits[_chosen(limits)][1] for name, limits in counts.items()}
    return found


Makers = dict[str, Callable[[int], Detector]]


def _makers(
    playhead: Playhead, kind: Kind, calendar: Calendar, seed: int, counts: dict[str, dict[float, list[int]]]
) -> Makers:  # fmt: skip
    """Each detector as it is at a moment of the judged week (ms since `T0`): by then limits are chosen."""
    return {
        "anomaly": lambda _: playhead.copy((REBUFFERING,)),
        "peer fixed": lambda _: FixedThreshold(kind.rebuffering * _chosen(counts["fixed"])),
        "peer ewma": lambda at_ms: _warm(Ewma(_chosen(counts["ewma"])), kind, calendar, seed, at_ms),
    }


def _moments(seed: int, incidents: int, from_ms: int, to_ms: int) -> list[int]:
    """When incidents are tried: anywhere in the judged week, each by itself."""
    last_ms = to_ms - _BEFORE_MS - _AFTER_MS - BUCKET_MS
    return sorted(int(one) for one in default_rng(seed + 1_000).integers(from_ms, last_ms, incidents))


def _chosen(limits: dict[float, list[int]]) -> float:
    """The lowest limit with no more than one alert in the learned weeks."""
    return next((limit for limit, (before, _) in sorted(limits.items()) if before <= 1), max(limits))


def _warm(chart: Ewma, kind: Kind, calendar: Calendar, seed: int, end_ms: int) -> Ewma:
    for closed in buckets(kind, calendar, default_rng(seed), end_ms - 7_200_000, end_ms):
        chart.take(closed)
    return chart


def _incident(kind: Kind, calendar: Calendar, seed: int, at_ms: int, makers: Makers) -> dict[str, float | None]:
    """Seconds until each detector alerts; those that alert before it has begun have not found it."""
    rng = default_rng(seed)
    begin_ms = at_ms + _BEFORE_MS + int(rng.integers(0, BUCKET_MS))
    detectors = {name: make(at_ms) for name, make in makers.items()}
    delays: dict[str, float | None] = dict.fromkeys(makers)
    incident = Incident(begin_ms, 2.0)
    for closed in buckets(
        kind, calendar, rng, at_ms, begin_ms + _AFTER_MS, incident=incident, viewers=VIEWERS
    ):  # fmt: skip
        end_ms = closed.start_ms - T0 + BUCKET_MS
        for name, detector in detectors.items():
            if detector.take(closed) and end_ms > begin_ms and delays[name] is None:
                delays[name] = (end_ms - begin_ms) / 1_000
    return delays


def _row(name: str, results: list[Found], key: str, way_seconds: float) -> tuple[str, float, float, float, float]:
    """(line, fraction found, median, p99, false alerts a week)."""
    every = [delay for one in results for delay in one.delays.get(key, [])]
    delays = sorted(delay + way_seconds for delay in every if delay is not None)
    false = sum(one.false[JUDGED].get(key, 0) for one in results) / len(results)
    if not every:
        return f"| {name} | | | | {false:.2f} |", 0, 0, 0, false
    share = len(delays) / len(every)
    median, p99 = (nearest_rank(delays, q) or float("inf") for q in (0.5, 0.99))
    line = f"| {name} | {share:.1%} of {len(every)} | {median:.1f} | {p99:.1f} | {false:.2f} |"
    return line, share, median, p99, false


def _goals(kind: Kind, share: float, median: float, p99: float) -> list[Compared]:
    of_median, of_p99 = GOAL_SECONDS
    return [
        Compared(f"2× at {VIEWERS} viewers, {kind.name}: found", f"{share:.1%}", "≥ 99 %", share >= 0.99),
        Compared(
            "median from the first bad moment to the receiver",
            f"{median:.1f} s",
            f"≤ {of_median:g} s",
            median <= of_median,
        ),
        Compared("p99 of the same", f"{p99:.1f} s", f"≤ {of_p99:g} s", p99 <= of_p99),
    ]


def _of_rules(results: list[Found]) -> tuple[list[str], list[Compared]]:
    """False alerts by rule and period, and their goals."""
    rules = [rule.id for rule in RULES]
    weekly = {rule: sum(one.false[JUDGED][rule] for one in results) / len(results) for rule in rules}
    lines = [f"| rule | {' | '.join(PERIODS)}, by environment |", "|---" * (len(PERIODS) + 1) + "|"]
    for rule in rules:
        cells = [f"{sum(one.false[period][rule] for one in results) / len(results):.2f}" for period in PERIODS]
        each = ", ".join(str(one.false[JUDGED][rule]) for one in results)
        lines.append(f"| {rule} | {' | '.join(cells)} ({each}) |")
    false, windows = sum(weekly.values()) * len(results), sum(one.windows for one in results)
    mean, (worst, most) = sum(weekly.values()) / len(rules), max(weekly.items(), key=lambda one: one[1])
    of_windows = false / windows * 1_000
    return lines, [
        Compared("false alerts in 1,000 windows", f"{of_windows:.4f}", "< 1", of_windows < 1),
        Compared("false alerts of a rule in a week", f"{mean:.2f}", "< 1", mean < 1),
        Compared(f"the same, of the rule with the most ({worst})", f"{most:.2f}", "< 1", most < 1),
    ]


def report(results: list[Found], way_ms: int, command: str) -> Part:
    """The result file."""
    way, lines, compared = way_ms / 1_000, list[str](), list[Compared]()
    lines += [
        (
            f"Twice the rebuffering at {VIEWERS} viewers. The delays include {way:.1f} s from the end of a bucket to the receiver;"
            " this time is assumed, not measured. False alerts are those of a week without an incident, of an environment."
        ),
        "",
        "| usual share that rebuffers, and how it is judged | found | median s | p99 s | false alerts a week |",
        "|---|---|---|---|---|",
    ]
    for kind in KINDS:
        of_kind = [one for one in results if one.kind == kind.name]
        if not of_kind:
            continue
        for key, words in (("anomaly", "Playhead, anomaly"), ("peer fixed", "fixed threshold"), ("peer ewma", "EWMA")):
            line, share, median, p99, _ = _row(f"{kind.name}, {words}", of_kind, key, way)
            lines.append(line)
            if key == "anomaly" and kind is GOAL_KIND:
                compared += _goals(kind, share, median, p99)
    windows = sum(one.windows for one in results)
    of_rules, goals = _of_rules(results)
    compared += goals
    lines += ["", "False alerts of an environment, on average:", "", *of_rules]
    checked = (
        f"{windows:,} windows of {len(results)} environments were judged; every incident was given to every detector; no constant"
        " was chosen on these seeds"
    )
    return Part("alerts", "Alerts: how soon, and how often in vain", command, checked, compared, lines)


def main() -> int:
    """0 when the figures are kept."""
    parser = argparse.ArgumentParser(prog="python -m bench.alerts", description=__doc__)
    parser.add_argument("--environments", type=int, default=3, help="of each kind")
    parser.add_argument("--incidents", type=int, default=150, help="of each environment")
    parser.add_argument("--way", type=int, default=1_500, help="ms from a bucket's end to the receiver, assumed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tuning", action="store_true", help="on the seeds for choosing constants; nothing is kept")
    parser.add_argument("--goal-only", action="store_true", help="only the kind whose figures have goals")
    given = parser.parse_args()
    seed = TUNING_SEED if given.tuning else HELD_OUT_SEED
    kinds_run = [GOAL_KIND] if given.goal_only else KINDS
    jobs = [(kind, seed + number) for kind in kinds_run for number in range(given.environments)]
    with ProcessPoolExecutor(given.workers) as pool:
        kinds, seeds = zip(*jobs, strict=True)
        results = list(pool.map(partial(environment, incidents=given.incidents), kinds, seeds))
    command = f"python -m bench.alerts --environments {given.environments} --incidents {given.incidents}"
    part = report(results, given.way, command + (" --goal-only" if given.goal_only else ""))
    if not given.tuning:
        keep(part)
    print("\n".join([*part.lines, "", *table([part])]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
