"""`python -m deploy.topics grow beacons 16`: more partitions for a topic, and the state of its application moved to them.

State is copied while slots work. The command says when to stop the slots and standbys of the application, moves what has changed
since, and says how to start them again; producers go on all the time. It may be killed and run again at any time: what is done is
done (docs/growing.md). `--dry-run` looks whether it would begin, and what it would move.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.growing.counts import awaited, counts, request
from deploy.growing.growth import Growing, growing_of
from deploy.growing.still_at_work import at_work, await_silence
from deploy.growing.workers import Killed, Workers
from services.processor.engine.division import CannotGrow
from services.processor.engine.state.rows import NewerFormat
from services.processor.runtime.kafka.reading import ReadingFailed
from services.processor.runtime.operations.growing import sources
from services.rim.kafka.connection import client_config
from services.rim.process.crash_points import CrashPoints
from shared.settings import SettingsError

#: How long the command goes on copying while it waits for the slots to be stopped.
WAIT_SECONDS: Final = 900.0


def main(arguments: Sequence[str]) -> int:
    """The command; 0 when the state is divided among so many partitions, 1 when it is not, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m deploy.topics grow", description=__doc__)
    parser.add_argument("topic", help="the input whose partitions grow, with the changelog of its application")
    parser.add_argument("partitions", type=int, help="a multiple of their present number")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, only say what would be done")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="that move partitions at the same time"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=WAIT_SECONDS,
        help="seconds that the slots have to be stopped in, once all is copied",
    )
    chosen = parser.parse_args(arguments)
    try:
        growing = growing_of(chosen.topic, chosen.partitions)
        _run(growing, processes=max(1, chosen.processes), wait_seconds=chosen.wait, is_dry=chosen.dry_run)
    except SettingsError as problem:
        print(f"grow: {problem}", file=sys.stderr)
        return 2
    except (CannotGrow, ReadingFailed, NewerFormat) as problem:
        print(f"grow: {problem}", file=sys.stderr)
        return 1
    except KafkaException as problem:
        print(f"grow: {problem.args[0].str()}; run it again", file=sys.stderr)
        return 1
    except Killed:
        print("grow: a process that moved partitions was killed; run it again", file=sys.stderr)
        return 1
    return 0


def _run(growing: Growing, *, processes: int, wait_seconds: float, is_dry: bool) -> None:
    settings, application, wanted = growing.settings, growing.application, growing.partitions
    admin = AdminClient(client_config(settings, "deploy-growing"))
    present = counts(admin, growing.names)
    too_many = [f"{name} has {count}" for name, count in present.items() if count > wanted]
    if too_many:
        raise CannotGrow(f"partitions never become fewer: {', '.join(too_many)}")
    to_move = sources(settings, application, min(present.values()), wanted)
    for name, count in present.items():
        print(f"{name}: {count} partitions" + ("" if count == wanted else f", to become {wanted}"))
    print(f"state of {len(to_move)} partitions to be divided among {wanted}", flush=True)
    running = at_work(admin, growing)
    if is_dry:
        if running:
            print(f"{len(running)} at work, to be stopped once the state is copied: {', '.join(sorted(running))}")
        return
    # The changelog first and alone: slots that start again meanwhile go by the number of the inputs.
    request(admin, [application.changelog.name], wanted)
    awaited(admin, [application.changelog.name], wanted)
    with Workers(growing, to_move, processes) as workers:
        for copied in workers.copied(is_silent=not running):
            print(f"partition {copied.partition}: {copied.rows} rows copied", flush=True)
        if at_work(admin, growing):
            print(
                f"copied; now stop all slots and standbys of {application.name}: the command waits {wait_seconds:.0f} s for"
                " that, and goes on copying",
                flush=True,
            )
        try:
            await_silence(admin, growing, seconds_max=wait_seconds)
        except CannotGrow:
            workers.forget()
            raise
        _move(admin, growing, workers)
    print(
        f"set PLAYHEAD_BEACON_PARTITIONS={wanted} for every service, start the slots, then restart the other services one after"
        " the other"
    )


def _move(admin: AdminClient, growing: Growing, workers: Workers) -> None:
    began = time.monotonic()
    inputs = [topic.name for topic in growing.application.inputs]
    request(admin, inputs, growing.partitions)
    CrashPoints(growing.settings.crash_at).reach("grow_raised")
    for moved in workers.moved():
        print(
            f"partition {moved.partition}: {moved.rows} rows moved in {moved.seconds:.1f} s, {moved.late_rows} changed since",
            flush=True,
        )
    awaited(admin, inputs, growing.partitions)
    print(f"done in {time.monotonic() - began:.1f} s", flush=True)
