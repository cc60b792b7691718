"""The whole of Playhead on this machine, with simulated players whose truth is known: `make demo`.

Starts every process, plays, waits until everything has landed, compares, stops. Exit code 0: all results are equal to the players'
truth, and every process ended with nothing left over; 1: something differs; 2: something died, was too late or did not answer; 130:
interrupted. All files are in one folder (`.local/demo`), which is new in each run.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.demo.applications import catalogue
from deploy.demo.applications.part import Part
from deploy.demo.display import Display
from deploy.demo.run import NotOurs, Play, demo_folder, drive
from deploy.demo.viewers.crowd import Players
from deploy.local.paths import LOCAL
from loadtest.audience import VIEWERS_MAX
from loadtest.incident import incident_of

FOLDER: Final = LOCAL / "demo"
#: The players' stories need this long.
SECONDS_MIN: Final = 20
SECONDS_MAX: Final = 600
#: Of these some two thirds play at the same time.
VIEWS: Final = 600
VIEWS_MAX: Final = 2_000
#: Viewers who play while the demo stays up.
LIVE: Final = 20


def main(arguments: Sequence[str]) -> int:
    """The command."""
    given = _parse(arguments)
    display = Display()
    # `kill` is to end a demo as Ctrl-C does: cleanly.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    players = Players(given.views, given.seconds, given.seed, has_incident=True)
    play = Play(players, given.apps, live=given.live, incident=incident_of(given.seconds))
    return drive(given.folder, play, display, keep=given.keep)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--views", type=int, default=VIEWS, help=f"1 to {VIEWS_MAX}")
    parser.add_argument("--seed", type=int, default=7, help="the same seed makes the same stories")
    parser.add_argument(
        "--keep", action="store_true", help="stay up after the table, for the page and for real players"
    )
    parser.add_argument(
        "--live", type=int, default=LIVE, help=f"with --keep: viewers who play after the table, 0 to {VIEWERS_MAX}"
    )
    parser.add_argument(
        "--seconds", type=int, default=60, help=f"how long players play, {SECONDS_MIN} to {SECONDS_MAX}"
    )
    parser.add_argument(
        "--apps",
        type=_parts,
        default="",
        help=f"show other applications too: all, or some of {','.join(part.application for part in catalogue.ALL)}",
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where everything lies; emptied first")
    given = parser.parse_args(arguments)
    if not 1 <= given.views <= VIEWS_MAX:
        parser.error(f"--views is 1 to {VIEWS_MAX}")
    if not 0 <= given.live <= VIEWERS_MAX:
        parser.error(f"--live is 0 to {VIEWERS_MAX}")
    if not SECONDS_MIN <= given.seconds <= SECONDS_MAX:
        parser.error(f"--seconds is {SECONDS_MIN} to {SECONDS_MAX}")
    try:
        given.folder = demo_folder(given.folder, FOLDER)
    except NotOurs as problem:
        parser.error(str(problem))
    return given


def _parts(names: str) -> tuple[Part, ...]:
    try:
        return catalogue.named(names)
    except catalogue.NoSuchPart as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
