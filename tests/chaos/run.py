"""One chaos run: a broker, slots and a feed of its own, faults for a given time, then the verdict and a table."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.broker import START_SECONDS_MAX
from tests.chaos import logs
from tests.chaos.faults import STANDBY_OF, Fleet
from tests.chaos.feed import PARTITIONS, PROFILE, Feed, Truth
from tests.chaos.inputs import stored, with_doubled
from tests.chaos.outputs import Outputs
from tests.chaos.schedule import run_faults
from tests.chaos.verdict import Verdict, judge
from tests.integration.parts.brokers import OF_VIEWS, broker_with_topics
from tests.integration.parts.slots import Slot, wait_until

READY_SECONDS_MAX: Final = 90.0
#: After the last fault: so long may nothing come out before all is right; and by then it must be, on however busy a machine.
SETTLE_SECONDS_MAX: Final = 120.0
SETTLED_SECONDS_MAX: Final = 900.0
#: The number in the names of the standby's files; no slot has it.
STANDBY_NUMBER: Final = 10
_LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Options:
    """What a run is: its length, its chance, its size."""

    seconds: float
    seed: int
    slots: int = 3
    views_per_second: float = 30.0
    session_ms: int = 6_000
    #: Whether a slot has a standby, and whether faults are injected into the broker too.
    standby: bool = False
    broker_faults: bool = False
    #: Views that last as long as the run, and hostile records a beacon.
    long_views: int = 0
    hostile_share: float = 0.0
    #: 0: as they come.
    faults_per_hour: float = 0.0


@dataclass(frozen=True)
class Result:
    """What befell the slots, and what came out."""

    options: Options
    faults: Counter[str]
    refused: Counter[str]
    exits: Counter[int]
    ended_unexpectedly: list[str]
    found_no_broker: int
    replaced: int
    ended_without_descriptors: int
    takeovers: int
    promotions: int
    replayed_rows: int
    truth: Truth
    verdict: Verdict

    @property
    def is_right(self) -> bool:
        """Whether every view is right and no slot ended by itself."""
        return self.verdict.is_right and not self.ended_unexpectedly

    def table(self) -> str:
        """The result as lines to read."""
        options, verdict = self.options, self.verdict
        lines = [
            f"chaos: {options.seconds / 60:.1f} minutes, seed {options.seed}",
            f"{options.slots} slots at first, {PARTITIONS} partitions, session {options.session_ms} ms",
            "",
            *(f"{kind:<36}{count:>9,}" for kind, count in sorted(self.faults.items())),
            f"{'faults in all':<36}{self.faults.total():>9,}",
            "",
            *(f"{'commit ' + kind:<36}{count:>9,}" for kind, count in sorted(self.refused.items())),
            f"{'commits refused or unclear':<36}{self.refused.total():>9,}",
            f"{'partitions taken':<36}{self.takeovers:>9,}",
            f"{'slots taken by their standby':<36}{self.promotions:>9,}",
            f"{'changelog rows replayed':<36}{self.replayed_rows:>9,}",
            *(f"{f'slots that ended with code {code}':<36}{count:>9,}" for code, count in sorted(self.exits.items())),
            f"{'slots that found no broker to start':<36}{self.found_no_broker:>9,}",
            f"{'slots replaced by their own request':<36}{self.replaced:>9,}",
            f"{'slots that ended out of descriptors':<36}{self.ended_without_descriptors:>9,}",
            f"{'slots that ended unexpectedly':<36}{len(self.ended_unexpectedly):>9,}",
            "",
            f"{'beacons':<36}{self.truth.beacons:>9,}",
            f"{'beacons sent again':<36}{self.truth.copies:>9,}",
            f"{'hostile records':<36}{self.truth.rejected:>9,}",
            f"{'of these doubled by Kafka':<36}{self.truth.doubled:>9,}",
            f"{'views':<36}{len(self.truth.rows):>9,}",
            f"{'revisions':<36}{verdict.revisions:>9,}",
            "",
            f"{'missing':<36}{len(verdict.missing):>9,}",
            f"{'doubled':<36}{len(verdict.doubled):>9,}",
            f"{'wrong':<36}{len({fault[0] for fault in verdict.wrong}):>9,}",
            f"{'split':<36}{len(verdict.split):>9,}",
            f"{'still open':<36}{verdict.still_open:>9,}",
            f"{'late or rejected':<36}{verdict.late_or_rejected:>9,}",
            f"{'live sums that differ':<36}{len(verdict.sums):>9,}",
        ]
        return "\n".join([*lines, *self._faults_found()])

    def _faults_found(self) -> list[str]:
        verdict = self.verdict
        found = [
            *verdict.missing,
            *verdict.doubled,
            *verdict.wrong,
            *verdict.split,
            *verdict.sums,
            *self.ended_unexpectedly,
        ]
        return ["", *(f"FAULT {fault}" for fault in found[:20])] if found else []


@dataclass(frozen=True)
class Scene:
    """Where faults are injected: where its brokers are reached, and the fleet."""

    bootstrap: str
    fleet: Fleet


#: Sets a run up, and takes it down.
Stage = Callable[["Options", Path], AbstractContextManager[Scene]]


def settings_of(options: Options, number: int, *, away_ms: int, **more: str) -> dict[str, str]:
    """The settings of a slot. Brokers are away, or their clocks off, by `away_ms` at the most."""
    standby = {"PROCESSOR_STANDBYS": "1", "PROCESSOR_HAND_BACK_MS": "3000"}
    return {
        "PLAYHEAD_TOPICS_PROFILE": PROFILE,
        "PROCESSOR_SESSION_MS": str(options.session_ms),
        # So that in a short time many takeovers meet a store behind its changelog, and many one that is not.
        "PROCESSOR_FLUSH_INTERVAL_MS": "1500",
        "VIDEO_VIEWS_FINISH_CLEAN_MS": "1500",
        "VIDEO_VIEWS_FINISH_ENDED_MS": "3000",
        "VIDEO_VIEWS_FINISH_SILENT_MS": "4000",
        "VIDEO_VIEWS_FINISH_PAUSED_MS": "4000",
        # Views are forgotten while others run, so that tombstones and closed markers take part. Not while the broker is
        # away: what waits for it meanwhile would be late, and rightly so.
        "VIDEO_VIEWS_LATENESS_MS": str(30_000 + away_ms),
        "VIDEO_VIEWS_CLOSED_MS": str(60_000 + away_ms),
        **(standby if options.standby and number == STANDBY_OF else {}),
        **more,
    }


def standby_settings() -> dict[str, str]:
    """The settings of the process that stands by."""
    return {"PROCESSOR_SLOT": f"test/{STANDBY_OF}", "PROCESSOR_STANDBYS": "1", "PROCESSOR_REPLICA": "1"}


@contextmanager
def laptop(options: Options, folder: Path) -> Iterator[Scene]:
    """One broker and the slots, as processes on this machine."""
    away_ms = round(START_SECONDS_MAX * 1000) if options.broker_faults else 0
    with broker_with_topics(folder / "broker", OF_VIEWS, profile=PROFILE) as broker:

        def make(number: int, **environ: str) -> Slot:
            return Slot(broker.bootstrap, folder, number, **(settings_of(options, number, away_ms=away_ms) | environ))

        fleet = Fleet(
            make,
            options.slots,
            options.session_ms / 1000,
            standby=make(STANDBY_NUMBER, **standby_settings()) if options.standby else None,
            broker=broker if options.broker_faults else None,
        )
        yield Scene(broker.bootstrap, fleet)


def run(options: Options, folder: Path, stage: Stage = laptop) -> Result:
    """Runs in `folder`, which keeps the logs. Ends all that it started, also after an error."""
    with stage(options, folder) as scene, ExitStack() as ending:
        fleet = scene.fleet
        ending.callback(fleet.end)
        outputs = Outputs(scene.bootstrap)
        ending.callback(outputs.close)
        feed = Feed(
            scene.bootstrap,
            seconds=options.seconds,
            views_per_second=options.views_per_second,
            seed=options.seed,
            long_views=options.long_views,
            hostile_share=options.hostile_share,
        )
        ending.callback(feed.stop_beginning)
        wait_until(fleet.all_ready, "the slots are ready", READY_SECONDS_MAX)
        feed.start()
        faults = run_faults(fleet, options.seed, options.seconds, feed.check, options.faults_per_hour)
        truth, verdict = _settle(fleet, feed, outputs, scene.bootstrap)
    log_files = [slot.log_file for slot in fleet.processes]
    taken, replayed_rows = logs.takeovers(log_files)
    return Result(
        options=options,
        faults=faults,
        refused=logs.refused_commits(log_files),
        exits=fleet.exits,
        ended_unexpectedly=fleet.ended_unexpectedly,
        found_no_broker=fleet.found_no_broker,
        replaced=fleet.replaced,
        ended_without_descriptors=fleet.ended_without_descriptors,
        takeovers=taken,
        replayed_rows=replayed_rows,
        promotions=sum(
            logs.promotions(log_file) for log_file in log_files if log_file.stem == f"slot-{STANDBY_NUMBER}"
        ),
        truth=truth,
        verdict=verdict,
    )


def _settle(fleet: Fleet, feed: Feed, outputs: Outputs, bootstrap: str) -> tuple[Truth, Verdict]:
    """The feed ends, all is folded and finished, the slots end; what stands then is judged."""
    feed.join(SETTLE_SECONDS_MAX)
    feed.check()
    assert not feed.is_alive(), "the feed does not end"
    sent = feed.truth()
    truth = with_doubled(sent, stored(bootstrap).less(feed.sent(), sent.rejected))
    end = time.monotonic() + SETTLED_SECONDS_MAX
    deadline, seen = 0.0, -1
    looked_at = 0.0
    while True:
        observed = outputs.read()
        if len(observed.rows) > seen:
            seen, deadline = len(observed.rows), min(end, time.monotonic() + SETTLE_SECONDS_MAX)
        if time.monotonic() >= deadline:
            break
        if time.monotonic() - looked_at >= _LOOK_SECONDS:
            looked_at = time.monotonic()
            fleet.look()
            if judge(observed, truth).is_right:
                break
    # Once right is not right for good: what the slots do on their way out counts too.
    fleet.stop()
    return truth, judge(outputs.read(), truth)
