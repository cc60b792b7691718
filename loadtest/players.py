"""Runs simulated players against a collector on this machine and writes the truth of their views to a file.

python -m loadtest.players --url http://localhost:8080 --views 400 --seconds 60 --seed 7 --truth truth.json
"""

import argparse
import asyncio
import ipaddress
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from loadtest.clients.headers import headers_of, path_of
from loadtest.expected.ledger import Ledger, ViewRecord
from loadtest.expected.truth import SimulatedBeacon
from loadtest.incident import Incident, incident_of
from loadtest.playing import Clock, Playing, Stage
from loadtest.story import TAIL_MS, VIEW_MS_MIN, Story, story_of

VIEWS_MAX: Final = 5_000
SECONDS_MIN: Final = (VIEW_MS_MIN + TAIL_MS) // 1_000
SECONDS_MAX: Final = 3_600
RETRY_SECONDS_MAX: Final = 600
POST_SECONDS_MAX: Final = 15
CONNECTIONS_MAX: Final = 128


class Poster:
    """POSTs beacons to one collector and keeps the ledger of the answers."""

    def __init__(self, session: aiohttp.ClientSession, url: str, ledger: Ledger) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._ledger = ledger

    async def __call__(
        self, view: ViewRecord, beacons: Sequence[SimulatedBeacon], body: bytes, *, is_closing: bool = False
    ) -> bool:
        """One attempt. Success is what a browser calls success: 2xx, and the page's origin allowed (but for sendBeacon)."""
        player = view.story.player
        url, headers = self._url + path_of(player), headers_of(player, is_closing=is_closing)
        try:
            async with self._session.post(url, data=body, headers=headers) as answer:
                await answer.read()
                ok = 200 <= answer.status < 300 and (is_closing or "Access-Control-Allow-Origin" in answer.headers)
        except (aiohttp.ClientError, TimeoutError, OSError):
            # Refused, cut off or unanswered: the collector may or may not have stored it.
            ok = False
        self._ledger.posted(view, beacons, ok=ok)
        return ok


async def run(
    url: str,
    *,
    views: int,
    seconds: int,
    seed: int,
    truth: Path,
    retry_seconds: int,
    incident: Incident | None = None,
    speed: float = 1.0,
) -> Ledger:
    """Lives `views` stories within `seconds`; returns the account when every player is over. Writes `truth` every second."""
    clock = Clock(speed)
    ledger = Ledger(seed, truth, clock.began_ms)
    timeout = aiohttp.ClientTimeout(total=POST_SECONDS_MAX)
    connector = aiohttp.TCPConnector(limit=CONNECTIONS_MAX)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        gives_up_ms = (seconds + retry_seconds) * 1_000
        stage = Stage(clock, Poster(session, url, ledger), urlsplit(url).netloc, gives_up_ms)
        playing = [
            asyncio.create_task(_view(stage, ledger, story_of(seed, number, seconds, incident), f"{seed}/{number}"))
            for number in range(views)
        ]
        writing = asyncio.create_task(_write_every_second(ledger))
        try:
            await asyncio.gather(*playing)
        finally:
            writing.cancel()
    ledger.write(done=True)
    return ledger


async def _view(stage: Stage, ledger: Ledger, story: Story, name: str) -> None:
    record = ViewRecord(story, stage.clock.began_ms + story.arrives_ms)
    is_known = await Playing(stage, record, Random(f"{name}/network")).live()
    ledger.settle(record, is_known=is_known)


async def _write_every_second(ledger: Ledger) -> None:
    while True:
        ledger.write(done=False)
        await asyncio.sleep(1)


def loopback_url(text: str) -> str:
    """The URL, if it is one of this machine; simulated load is never sent to anybody else."""
    parts = urlsplit(text)
    host = parts.hostname or ""
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if parts.scheme not in ("http", "https") or not is_loopback:
        raise argparse.ArgumentTypeError(f"{text!r} is not a loopback URL; only this machine may be loaded")
    return text


def bounded(low: int, high: int) -> Callable[[str], int]:
    """A parser of whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        number = int(text)
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{number} is not within {low}..{high}")
        return number

    return parse


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every POST was finally answered 2xx, 1 when not; the last line on stdout is the account."""
    parser = argparse.ArgumentParser(prog="loadtest.players", description=__doc__)
    parser.add_argument(
        "--url", type=loopback_url, default="http://localhost:8080", help="the collector, on this machine"
    )
    parser.add_argument("--views", type=bounded(1, VIEWS_MAX), default=400)
    parser.add_argument(
        "--seconds", type=bounded(SECONDS_MIN, SECONDS_MAX), default=60, help="all views are over by then"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--truth", type=Path, required=True, help="file for the truth, rewritten every second")
    parser.add_argument(
        "--retry-seconds",
        type=bounded(0, RETRY_SECONDS_MAX),
        default=60,
        help="how long after the run unanswered POSTs are still repeated",
    )
    parser.add_argument(
        "--incident",
        action="store_true",
        help="players have networks, devices and versions, and one cohort stalls; the collector must know the networks",
    )
    given = parser.parse_args(arguments)
    ledger = asyncio.run(
        run(
            given.url,
            views=given.views,
            seconds=given.seconds,
            seed=given.seed,
            truth=given.truth,
            retry_seconds=given.retry_seconds,
            incident=incident_of(given.seconds) if given.incident else None,
        )
    )
    print(ledger.totals)
    return 0 if ledger.totals.views_unresolved == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
