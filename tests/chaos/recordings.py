"""`python -m tests.chaos.recordings`: recordings at full size while collector, slots and broker are killed and the store is away.

Every payload must end up stored once, in order, byte for byte, and nothing else; exits 1 and keeps its folder otherwise.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.report import results
from tests.integration.applications.recording import (
    Payload,
    Scene,
    Sender,
    expect_stored,
    made_payloads,
    posted_at_once,
    streamed_back,
)
from tests.integration.parts.brokers import OF_COLLECTOR, broker_with_topics, topics_of
from tests.integration.parts.lookup_slots import TOKEN, LookupSlot
from tests.integration.parts.slots import wait_until

SLOTS: Final = 2
SECONDS_MAX: Final = 6 * 3600.0
#: Sessions that are read back over the lookup and compared.
READ_BACK: Final = 5

#: A run with as many payloads is a result that docs/results.md shows.
RESULT_PAYLOADS: Final = 5_000


@dataclass(frozen=True)
class Options:
    """What is run."""

    payloads: int
    sessions: int
    largest_bytes: int
    seed: int
    fault_seconds: float
    uploads: int


def run(options: Options, folder: Path) -> list[str]:
    """The lines of the report. Raises AssertionError when anything is not right."""
    payloads = made_payloads(options.payloads, options.sessions, options.largest_bytes, options.seed)
    largest = max(payload.size_bytes for payload in payloads) / 1e6
    total = sum(payload.size_bytes for payload in payloads)
    with ExitStack() as ending:
        wanted = [*topics_of("recordings"), *OF_COLLECTOR]
        broker = ending.enter_context(broker_with_topics(folder / "broker", wanted))
        scene = Scene(broker, folder / "scene", ending)
        point(scene.objects, folder / "objects")
        lines = [] if not options.uploads else [_memory(scene, options)]
        slots = [scene.slot(number) for number in range(SLOTS)]
        for server in slots:
            wait_until(server.slot.is_ready, "the slot works")
        begun = time.monotonic()
        sender = scene.send(payloads)
        faults = _with_faults(scene, slots, sender, options)
        sender.finish(60)
        sent_seconds = time.monotonic() - begun
        sent = [*payloads, *_uploads(options)]
        expect_stored(broker.bootstrap, scene.objects, sent, 600)
        stored_seconds = time.monotonic() - begun
        _read_back(slots[0], payloads)
        return [
            *lines,
            f"{len(payloads)} payloads of {options.sessions} sessions, {total / 1e6:,.0f} MB, the largest {largest:.0f} MB",
            f"faults: {', '.join(f'{name} {count}' for name, count in sorted(faults.items())) or 'none'}",
            f"posts: {sender.tries}, of which {sender.tries - len(payloads)} again ({sender.repeated} after a 200)",
            f"all answered 200 after {sent_seconds:.0f} s ({total / 1e6 / sent_seconds:.0f} MB/s)",
            f"all stored after {stored_seconds:.0f} s",
            "missing 0, doubled 0, out of order 0, other bytes 0",
            f"memory of the collector at its peak: {scene.collector.peak_bytes() / 1e6:.0f} MB",
        ]


def point(link: Path, folder: Path, *, make: bool = True) -> None:
    """Makes `link` lead to the folder, at once for all who use it. One that is not there cannot be made through the link."""
    if make:
        folder.mkdir(exist_ok=True)
    new = link.with_name(f"{link.name}.new")
    new.symlink_to(folder)
    new.replace(link)


def _uploads(options: Options) -> list[Payload]:
    return [Payload(f"memory-{number}", 0, options.largest_bytes) for number in range(options.uploads)]


def _memory(scene: Scene, options: Options) -> str:
    """The collector's memory with so many uploads at once."""
    statuses = asyncio.run(posted_at_once(scene.collector.url, _uploads(options)))
    assert statuses == [200] * options.uploads, Counter(statuses)
    peak = scene.collector.peak_bytes() / 1e6
    assert peak < 300, f"{peak:.0f} MB"
    return f"{options.uploads} uploads of {options.largest_bytes / 1e6:.0f} MB at once: {peak:.0f} MB at the peak"


def _with_faults(scene: Scene, slots: list[LookupSlot], sender: Sender, options: Options) -> Counter[str]:
    """Kills one thing after the other, and starts it again, until all is sent; or takes the object store away for a time."""
    random_ = random.Random(options.seed)

    def collector() -> None:
        scene.collector.child.kill()
        scene.collector.__enter__()

    def slot() -> None:
        server = random_.choice(slots)
        server.slot.kill()
        server.slot.start()

    def broker() -> None:
        scene.broker.kill()
        scene.broker.start()

    def store() -> None:
        there = scene.objects.readlink()
        point(scene.objects, there / "nowhere" / "at all", make=False)
        time.sleep(random_.uniform(0.5, 1.5) * options.fault_seconds)
        point(scene.objects, there)

    faults: dict[str, Callable[[], None]] = {
        "collector killed": collector,
        "slot killed": slot,
        "broker killed": broker,
        "object store away": store,
    }
    made: Counter[str] = Counter()
    deadline = time.monotonic() + SECONDS_MAX
    while sender.is_alive() and time.monotonic() < deadline:
        sender.join(options.fault_seconds * random_.uniform(0.5, 1.5))
        for ended in (server.slot for server in slots if not server.slot.is_running):
            # As a supervisor would; printed, since no fault ended it.
            print(f"slot {ended.number} ended unexpectedly: {ended.log_tail()[-300:]}", file=sys.stderr)
            made["slots that ended unexpectedly, and were started again:"] += 1
            ended.start()
        if sender.is_alive() and options.fault_seconds > 0:
            name = random_.choice(list(faults))
            faults[name]()
            made[name] += 1
            print(f"{name}; {sender.stored} of {options.payloads} stored", file=sys.stderr)
    return made


def _read_back(server: LookupSlot, payloads: list[Payload]) -> None:
    for session in sorted({payload.session for payload in payloads})[:READ_BACK]:
        mine = sorted((one for one in payloads if one.session == session), key=lambda one: one.sequence)
        path = f"/recordings/{session}/index?customer=acme"
        wait_until(lambda path=path: server.get(path)[0] == 200, "the session is found")  # type: ignore[misc]
        assert asyncio.run(streamed_back(server.url, TOKEN, session)) == [(one.sequence, one.content) for one in mine]


def main() -> int:
    """Runs, prints the report, and says where the logs are when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.recordings", description=__doc__)
    parser.add_argument("--payloads", type=int, default=500)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--mb", type=int, default=100, help="of the largest payload")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault-seconds", type=float, default=20.0, help="between kills, on average")
    parser.add_argument("--uploads", type=int, default=20, help="of the largest size at once, for the memory; 0: none")
    parser.add_argument("--folder", type=Path, help="where it works: three times the bytes sent; by default a new one")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="playhead-recordings-"))
    options = Options(
        given.payloads, given.sessions, given.mb * 1_000_000, given.seed, given.fault_seconds, given.uploads
    )
    is_right = False
    try:
        lines = run(options, folder)
        print("\n".join(lines))
        is_right = True
        if given.payloads >= RESULT_PAYLOADS:
            results.keep(
                results.Part(
                    name="chaos-recordings",
                    title="Session recordings through kills",
                    command=(
                        f"python -m tests.chaos.recordings --payloads {given.payloads} --sessions {given.sessions}"
                        f" --fault-seconds {given.fault_seconds:g} --seed {given.seed}"
                    ),
                    checked="every payload: 0 missing, 0 doubled, 0 out of order, 0 with other bytes",
                    compared=[],
                    lines=results.fenced("\n".join(lines)),
                )
            )
    finally:
        if is_right:
            shutil.rmtree(folder)
        else:
            print(f"logs: {folder}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
