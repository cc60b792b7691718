"""The demo's simulated players against deploy/compose.yaml in the docker at hand: `make compose-demo`.

Starts the stack (images of `make images`, the others from their registries), plays, waits until everything has landed, compares
with the players' truth, removes everything. Exit codes are the demo's: 0 all is equal, 1 something differs, 2 something died or was
too late, 130 interrupted.
"""

import argparse
import shutil
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.demo.comparing.watch import Watch
from deploy.demo.display import Display
from deploy.demo.play import Playing
from deploy.demo.run import EXIT_DIED, EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK
from deploy.demo.viewers.crowd import Players
from deploy.images.stack import ComposeFailed, Stack
from deploy.local.paths import LOCAL, ROOT
from deploy.local.process import DeadlinePassed, ProcessDied
from deploy.local.supervisor import Supervisor
from deploy.observability import dashboards

FOLDER: Final = LOCAL / "compose-demo"
#: Where the compose file has Grafana look.
DASHBOARDS: Final = LOCAL / "dashboards"
VIEWS_MAX: Final = 2_000
SECONDS_MIN: Final = 20
SECONDS_MAX: Final = 600
HEALTHY_SECONDS_MAX: Final = 600.0
PROJECT: Final = "playhead-demo"
#: What players and people talk to, and what is compared.
WAITED_FOR: Final = ("collector-0", "collector-1", "dashboard", "finalizer", "serving", "query")


def run(stack: Stack, players: Players, display: Display) -> int:
    """Plays against a stack that is up, and compares; the exit code."""
    supervisor = Supervisor(stack.folder, cwd=ROOT)
    try:
        with Watch(stack.settings, stack, stack.postgres_dsn) as watch:
            playing = Playing(supervisor, watch, display)
            playing.play(players, stack.collector_urls[0], stack.new_truth())
            playing.land(lambda: stack.wait_healthy("finalizer", seconds=HEALTHY_SECONDS_MAX))
            verdict = watch.compare()
    finally:
        supervisor.stop()
    verdict.show(display)
    return EXIT_OK if verdict.ok else EXIT_DIFFERS


def drive(stack: Stack, players: Players, display: Display, *services: str) -> int:
    """A whole run with these services and what they need (none: all), from nothing to nothing; its exit code."""
    code = EXIT_DIED
    with display:
        try:
            # A run that was killed has left containers, and volumes that know other passwords.
            stack.prepare()
            stack.down()
            display.step("bringing the stack up: everything waits until what it needs is healthy")
            stack.up(*services)
            stack.wait_healthy(*WAITED_FOR, seconds=HEALTHY_SECONDS_MAX)
            display.step(f"collectors on {', '.join(stack.collector_urls)}, page on {stack.page_url}")
            code = run(stack, players, display)
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        except Exception as problem:  # noqa: BLE001 - after any failure, nothing is known to differ
            display.settle()
            if not isinstance(problem, ComposeFailed | DeadlinePassed | ProcessDied):
                traceback.print_exc()
            display.say(f"compose-demo: {problem}")
        finally:
            # From here on everything is given its time to end; a second Ctrl-C must not cut that short.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            display.settle()
            display.step("taking the stack down")
            try:
                stack.down()
            except ComposeFailed as problem:
                display.say(f"compose-demo: {problem}")
                code = code or EXIT_DIED
    return code


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make compose-demo", description=__doc__)
    parser.add_argument("--views", type=int, default=300, help=f"1 to {VIEWS_MAX}")
    parser.add_argument("--seconds", type=int, default=60, help=f"of playing, {SECONDS_MIN} to {SECONDS_MAX}")
    parser.add_argument("--seed", type=int, default=7, help="the same seed makes the same stories")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where logs and copies lie; emptied first")
    parser.add_argument("services", nargs="*", help="of the compose file, with what they need; none: all")
    given = parser.parse_args(arguments)
    if not 1 <= given.views <= VIEWS_MAX:
        parser.error(f"--views is 1 to {VIEWS_MAX}")
    if not SECONDS_MIN <= given.seconds <= SECONDS_MAX:
        parser.error(f"--seconds is {SECONDS_MIN} to {SECONDS_MAX}")
    folder: Path = given.folder.absolute()
    if folder.exists() and any(folder.iterdir()) and not (folder / "overrides.json").exists():
        parser.error(f"{folder} holds something else than a demo")
    shutil.rmtree(folder, ignore_errors=True)
    dashboards.main([str(DASHBOARDS)])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return drive(Stack(folder, PROJECT), Players(given.views, given.seconds, given.seed), Display(), *given.services)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
