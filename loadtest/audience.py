"""Keeps simulated viewers playing against a collector on this machine until it is stopped (SIGTERM or Ctrl-C).

python -m loadtest.audience --url http://localhost:8080 --viewers 20 --seed 7

Each viewer plays one view after the other. Nothing is compared: the viewers only give the page something to show.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from loadtest.expected.ledger import Ledger, ViewRecord
from loadtest.incident import Incident, incident_of
from loadtest.players import CONNECTIONS_MAX, POST_SECONDS_MAX, Poster, bounded, loopback_url
from loadtest.playing import Clock, Playing, Stage
from loadtest.story import story_of

VIEWERS_MAX: Final = 500
#: A view takes at most this long.
STORY_SECONDS: Final = 60
_GIVES_UP_MS: Final = 2 * STORY_SECONDS * 1_000


async def play(
    url: str,
    *,
    viewers: int,
    seed: int,
    speed: float = 1.0,
    stories: int | None = None,
    incident: Incident | None = None,
) -> None:
    """Plays until it is cancelled, or until each viewer has played so many `stories`."""
    timeout = aiohttp.ClientTimeout(total=POST_SECONDS_MAX)
    connector = aiohttp.TCPConnector(limit=CONNECTIONS_MAX)
    numbers = count()
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

        async def viewer() -> None:
            for played in count():
                if played == stories:
                    return
                # Without the time until it arrives: as many play as there are viewers.
                story, clock = (
                    replace(story_of(seed, next(numbers), STORY_SECONDS, incident), arrives_ms=0),
                    Clock(speed),
                )
                # A ledger of its own: an account of all views would grow for as long as this runs.
                stage = Stage(
                    clock, Poster(session, url, Ledger(seed, Path("unused"))), urlsplit(url).netloc, _GIVES_UP_MS
                )
                record = ViewRecord(story, clock.began_ms + story.arrives_ms)
                await Playing(stage, record, Random(f"{seed}/{story.player.view_id}/network")).live()

        await asyncio.gather(*(viewer() for _ in range(viewers)))


async def until_stopped(url: str, *, viewers: int, seed: int, incident: Incident | None = None) -> None:
    """Plays until a signal asks this process to end."""
    playing = asyncio.create_task(play(url, viewers=viewers, seed=seed, incident=incident))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, playing.cancel)
    await asyncio.gather(playing, return_exceptions=True)
    if not playing.cancelled() and (error := playing.exception()) is not None:
        raise error


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when it was stopped."""
    parser = argparse.ArgumentParser(prog="loadtest.audience", description=__doc__)
    parser.add_argument("--url", type=loopback_url, required=True, help="the collector, on this machine")
    parser.add_argument("--viewers", type=bounded(1, VIEWERS_MAX), default=20)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--incident", action="store_true", help="one cohort stalls, from the beginning")
    given = parser.parse_args(arguments)
    incident = replace(incident_of(STORY_SECONDS), from_ms=0) if given.incident else None
    asyncio.run(until_stopped(given.url, viewers=given.viewers, seed=given.seed, incident=incident))
    return 0


if __name__ == "__main__":
    sys.exit(main())
