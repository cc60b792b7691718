"""Many slots in little memory: `python -m bench.scale.host PARTITIONS FOLDER FIRST PORT ...`.

Each slot is a process of its own, forked from one that has imported the processor and has no Kafka client yet. It has two of the
ports. The profile has as many partitions of beacons as are given. Prints the slots' pids; SIGTERM stops all.
"""

import os
import signal
import sys
from pathlib import Path

from services.processor import program
from services.processor.__main__ import BUILD
from shared import topics
from shared.topics import Profile


def profile(partitions: int) -> Profile:
    """One broker, and so many partitions of everything keyed by view."""
    return Profile(
        "laptop", replication_factor=1, min_insync_replicas=1, view_partitions=partitions, recording_partitions=8
    )


def main(arguments: list[str]) -> int:
    """Forks the slots and waits for them."""
    partitions, folder, first, *ports = int(arguments[0]), Path(arguments[1]), *map(int, arguments[2:])
    topics.PROFILES["laptop"] = profile(partitions)  # type: ignore[index]  # of this process alone
    pids: list[int] = []
    for number, (admin, lookup) in enumerate(zip(ports[::2], ports[1::2], strict=True), first):
        pid = os.fork()
        if not pid:
            _become_slot(folder, number, admin, lookup)
        pids.append(pid)

    def stop(*_: object) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    print(*pids, flush=True)
    for _ in pids:
        os.wait()
    return 0


def _become_slot(folder: Path, number: int, admin: int, lookup: int) -> None:
    log = os.open(folder / f"slot-{number}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ |= {
        "PROCESSOR_SLOT": f"scale/{number}",
        "PROCESSOR_STATE_DIR": str(folder / f"state-{number}"),
        "PROCESSOR_ADMIN_PORT": str(admin),
        "PROCESSOR_LOOKUP_PORT": str(lookup),
    }
    program.leave(program.run([], BUILD))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
