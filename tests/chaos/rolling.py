"""`python -m tests.chaos.rolling`: a rolling restart of every slot under load; who moved, and how long beacons waited.

Three ways: a new process of the slot replaces the running one; the slot hands its id to its standby and takes it back; or it leaves
the group and comes back (which moves others' partitions, and is rolled only with `--way leave`).
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from bench.report import results
from tests.chaos import logs
from tests.chaos.feed import PARTITIONS, PROFILE, Feed
from tests.chaos.lag import Lag, Summary, commit_lags, summary
from tests.integration.parts.brokers import OF_VIEWS, broker_with_topics
from tests.integration.parts.slots import Slot, wait_until

READY_SECONDS_MAX: Final = 90.0
CALM_SECONDS: Final = 6.0
FEED_SECONDS_MAX: Final = 600.0
SLOTS: Final = 3

Way = Literal["replace", "standby", "leave"]
WAYS: Final[tuple[Way, ...]] = get_args(Way)
#: The exit code of a process that was replaced (`services.processor.program`).
REPLACED: Final = 4
#: The most that a restart may add to the lag, ms.
ADDED_MS_GOAL: Final = 2_000
_TITLES: Final[dict[Way, str]] = {"replace": "replaced by a new process", "standby": "with a standby"}
#: Added to a slot's number, names the files of the process that replaces it.
SUCCESSOR: Final = 100


@dataclass(frozen=True)
class Step:
    """One slot's restart: from SIGTERM until the slot has its share again."""

    slot: int
    began_ms: int
    ended_ms: int
    #: What the slot had; and what slots that stayed gave up, by the slot.
    departing: frozenset[int]
    given_up: dict[int, frozenset[int]]

    @property
    def moved(self) -> frozenset[int]:
        """Partitions of slots that stayed, never the departing slot's, that were moved."""
        return frozenset().union(*self.given_up.values()) - self.departing


@dataclass(frozen=True)
class Rolled:
    """A whole rolling restart. Lags in ms."""

    steps: list[Step]
    calm: Summary
    rolling: list[Summary]

    @property
    def added_ms(self) -> int:
        """The longest that any beacon waited during the restarts, more than the median of a calm time."""
        return max(step.max_ms for step in self.rolling) - self.calm.p50_ms


class Place:
    """A slot's processes: the one at home and, with a standby, one elsewhere."""

    def __init__(self, make: Callable[..., Slot], number: int, way: Way) -> None:
        shared = {
            "PROCESSOR_STANDBYS": "1" if way == "standby" else "0",
            "PROCESSOR_HAND_BACK_MS": "1500",
        }
        self.number = number
        self._make = make
        self._shared = shared
        self.home = make(number, **shared)
        self.former: Slot | None = None
        self.standby: Slot | None = None
        if way == "standby":
            elsewhere = {"PROCESSOR_SLOT": f"test/{number}", "PROCESSOR_REPLICA": "1"}
            self.standby = make(10 + number, **shared, **elsewhere)

    @property
    def processes(self) -> list[Slot]:
        return [self.home] if self.standby is None else [self.home, self.standby]

    def held(self) -> frozenset[int]:
        """What the home process has now, by its log."""
        return logs.held(self.home.log_file)

    def replace(self) -> None:
        """Starts a new process of the slot on the same disk; the one that runs ends when that has taken over."""
        former = self.former = self.home
        elsewhere = {"PROCESSOR_SLOT": f"test/{self.number}", "PROCESSOR_STATE_DIR": str(former.state_dir)}
        self.home = self._make(SUCCESSOR + self.number, **self._shared, **elsewhere)
        self.home.start()
        code = former.ended(READY_SECONDS_MAX)
        assert code == REPLACED, f"slot {self.number} ended with {code}: {former.log_tail()}"

    def restart(self) -> None:
        """Stops the process at home, then starts it again."""
        code = self.home.terminate()
        assert code == 0, f"slot {self.number} ended with {code}: {self.home.log_tail()}"
        self.home.start()

    def given_up_since(self, since_ms: int) -> frozenset[int]:
        """What its processes gave up or lost from then on."""
        gone: set[int] = set()
        for process in self.processes:
            for event in logs.events(process.log_file, "revoked", "lost"):
                if logs.at_seconds(event) * 1000 >= since_ms:
                    gone |= set(event["partitions"])
        return frozenset(gone)


def roll(folder: Path, *, way: Way, seed: int = 1, views_per_second: float = 20.0, **settings: str) -> Rolled:
    """Restarts three slots with these settings one after the other while beacons flow. Ends all that it started."""

    def make(number: int, **environ: str) -> Slot:
        # Views stay open: what is measured is hand-over, not finishing.
        return Slot(broker.bootstrap, folder, number, PLAYHEAD_TOPICS_PROFILE=PROFILE, **(settings | environ))

    with broker_with_topics(folder / "broker", OF_VIEWS, profile=PROFILE) as broker:
        places = [Place(make, number, way) for number in range(SLOTS)]
        feed = Feed(broker.bootstrap, seconds=FEED_SECONDS_MAX, views_per_second=views_per_second, seed=seed)
        try:
            for place in places:
                for process in place.processes:
                    process.start()
            _await_share(places)
            calm_ms = _now_ms()
            feed.start()
            # A calm time to compare with: as long as it takes to feed it.
            wait_until(lambda: _now_ms() - calm_ms > CALM_SECONDS * 1000, "a calm time", 2 * CALM_SECONDS)
            steps = [_restart(places, number, way) for number in range(SLOTS)]
            feed.stop_beginning()
            feed.join(READY_SECONDS_MAX)
            feed.check()
            for place in places:
                for process in reversed(place.processes):
                    # Its partitions go to those who are stopped next: whether it could commit all of it says nothing here.
                    process.terminate()
        finally:
            feed.stop_beginning()
            for place in places:
                for process in [*place.processes, *([] if place.former is None else [place.former])]:
                    process.end()
            if feed.is_alive():
                # It would fail in the middle of another test.
                feed.join(READY_SECONDS_MAX)
        return _measured(commit_lags(broker.bootstrap), calm_ms, steps)


def _restart(places: list[Place], number: int, way: Way) -> Step:
    departing = places[number].held()
    began_ms = _now_ms()
    if way == "replace":
        places[number].replace()
    else:
        places[number].restart()
    _await_share(places)
    given_up = {place.number: place.given_up_since(began_ms) for place in places if place.number != number}
    return Step(number, began_ms, _now_ms(), departing, given_up)


def _await_share(places: list[Place]) -> None:
    """Waits until every partition is worked at home, and no slot has more than one more than another."""

    def is_shared() -> bool:
        if not all(process.is_ready() for place in places for process in place.processes):
            return False
        held = [place.held() for place in places]
        sizes = [len(partitions) for partitions in held]
        return sum(sizes) == PARTITIONS == len(frozenset().union(*held)) and max(sizes) - min(sizes) <= 1

    wait_until(is_shared, "every slot works its share", READY_SECONDS_MAX)


def _measured(lags: list[Lag], calm_ms: int, steps: list[Step]) -> Rolled:
    first_ms = steps[0].began_ms
    # Those who begin a view wait for the first commit of a new partition; the first second is not the calm one.
    calm = summary(lag for lag in lags if calm_ms + 1_000 <= lag.append_ms < first_ms)
    rolling = [summary(lag for lag in lags if step.began_ms <= lag.append_ms < step.ended_ms) for step in steps]
    return Rolled(steps, calm, rolling)


def _now_ms() -> int:
    return int(time.time() * 1000)


def table(rolled: Rolled, way: Way) -> str:
    """The result as lines to read."""
    lines = [
        f"rolling restart of {SLOTS} slots, {PARTITIONS} partitions, way: {way}; beacon to commit, ms",
        "",
        f"{'':<12}{'seconds':>8}{'beacons':>9}{'p50':>7}{'p99':>7}{'max':>7}  moved of slots that stayed",
        f"{'calm':<12}{'':>8}{_lags(rolled.calm)}",
    ]
    for step, lags in zip(rolled.steps, rolled.rolling, strict=True):
        seconds = (step.ended_ms - step.began_ms) / 1000
        lines.append(f"{f'slot {step.slot}':<12}{seconds:>8.1f}{_lags(lags)}  {sorted(step.moved) or 'none'}")
    return "\n".join([*lines, "", f"largest added lag: {rolled.added_ms} ms"])


def _lags(lags: Summary) -> str:
    return f"{lags.beacons:>9,}{lags.p50_ms:>7,}{lags.p99_ms:>7,}{lags.max_ms:>7,}"


def main() -> int:
    """Rolls in the given ways, and prints a table of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.rolling", description=__doc__)
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--views-per-second", type=float, default=20.0)
    given = parser.parse_args()
    found: dict[Way, Rolled] = {}
    for way in given.way or ("replace", "standby"):
        folder = Path(tempfile.mkdtemp(prefix="playhead-rolling-"))
        try:
            rolled = roll(folder, way=way, seed=given.seed, views_per_second=given.views_per_second)
            print(table(rolled, way))
            if way != "leave":
                found[way] = rolled
        except BaseException:
            print(f"logs: {folder}", file=sys.stderr)
            raise
        shutil.rmtree(folder)
        print()
    if len(found) == len(_TITLES) and not any(step.moved for rolled in found.values() for step in rolled.steps):
        results.keep(_part(found))
    return 0


def _part(found: dict[Way, Rolled]) -> results.Part:
    """Both ways, as docs/results.md shows them."""
    rows = []
    for way, rolled in found.items():
        slots = [f"slot {step.slot}" for step in rolled.steps]
        for name, lags in zip(["before", *slots], [rolled.calm, *rolled.rolling], strict=True):
            moved = "" if name == "before" else "none"
            rows.append(f"| {_TITLES[way]}: {name} | {lags.p50_ms:,} | {lags.p99_ms:,} | {lags.max_ms:,} | {moved} |")
    return results.Part(
        name="rolling",
        title="Rolling restart of every slot",
        command="make rolling",
        checked="no partition of a slot that stayed moved",
        compared=[
            results.Compared(
                f"largest added lag, {_TITLES[way]}",
                f"{rolled.added_ms / 1_000:.2f} s",
                f"< {ADDED_MS_GOAL / 1_000:g} s",
                rolled.added_ms < ADDED_MS_GOAL,
            )
            for way, rolled in found.items()
        ],
        lines=[
            f"{SLOTS} slots on {PARTITIONS} partitions. From a beacon's append to the commit that folded it, ms:",
            "",
            "| restart | p50 | p99 | max | partitions of other slots moved |",
            "|---|---|---|---|---|",
            *rows,
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
