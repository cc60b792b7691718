"""Players for locust: `locust -f loadtest/locustfile.py --headless --processes 2 --host http://localhost:8080 --truth truth.json`.

Each user plays one view after another; the shape gives their number. Every process keeps the truth of its views; the first
collects them in the file format of `loadtest.players`.
"""

import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import gevent
from locust import FastHttpUser, LoadTestShape, constant, events, task
from locust.env import Environment

from loadtest.clients.headers import headers_of, path_of, route_of
from loadtest.expected.accounts import AccountReader, Accounts
from loadtest.expected.ledger import Ledger, ViewRecord, write_truth
from loadtest.expected.truth import SimulatedBeacon
from loadtest.players import loopback_url
from loadtest.shapes import SHAPES, players_at
from loadtest.story import VIEW_MS_MAX, story_of
from loadtest.visit import INSIST_MS_MAX, Answer, Visit, wall_ms

#: The length of a story: the longest view fits.
STORY_SECONDS: Final = VIEW_MS_MAX // 1_000 + 5
#: A user that is to go plays its view to the end, and gets the answer of every POST.
STOP_SECONDS: Final = (VIEW_MS_MAX + INSIST_MS_MAX) // 1_000 + 5
#: Stories of different processes are different ones.
_PROCESS: Final = 1_000_000


class Book:
    """What this process keeps: its ledger, and, in the first, the accounts of all."""

    def __init__(self) -> None:
        self.ledger = Ledger(0, Path("unwritten"))
        self.reader = AccountReader(self.ledger)
        self.accounts = Accounts()
        self.views = 0
        #: Views under way in this process.
        self.playing = 0
        #: The same of other processes, as they reported it since it was last cleared.
        self.playing_elsewhere: dict[str, int] = {}


BOOK: Final = Book()


@events.init_command_line_parser.add_listener
def _arguments(parser: Any) -> None:
    parser.add_argument("--shape", choices=SHAPES, default="soak", help="how the number of players changes")
    parser.add_argument("--viewers", type=int, default=50, help="players at the most")
    parser.add_argument("--seconds", type=int, default=60, help="how long the shape lasts")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--truth", required=True, help="file for the truth, rewritten every few seconds")


@events.init.add_listener
def _begin(environment: Any, **_: Any) -> None:
    # Simulated load is never sent to another machine.
    loopback_url(environment.host or "")
    environment.stop_timeout = STOP_SECONDS


def _given(environment: Environment) -> Namespace:
    """The command's arguments."""
    options: Namespace | None = environment.parsed_options
    assert options is not None
    return options


class Shape(LoadTestShape):
    """As many players as `loadtest.shapes` gives."""

    _over_at: float | None = None

    def tick(self) -> tuple[int, float] | None:
        """How many, and how many a second may come; none at the end, until the last view is over and in the account.

        Locust ignores all reports of processes after this has returned None.
        """
        assert self.runner is not None
        given = _given(self.runner.environment)
        number = players_at(given.shape, self.get_run_time(), viewers=given.viewers, seconds=given.seconds)
        at_once = max(1.0, given.viewers / 2)
        if number is not None:
            return number, at_once
        if self._over_at is None:
            self._over_at = time.monotonic()
            # Reports from before the last views began do not count.
            BOOK.playing_elsewhere.clear()
        processes = len(getattr(self.runner, "clients", ()))
        is_heard = len(BOOK.playing_elsewhere) >= processes and not any(BOOK.playing_elsewhere.values())
        is_over = is_heard and not BOOK.playing
        return None if is_over or time.monotonic() - self._over_at > STOP_SECONDS else (0, at_once)


class Player(FastHttpUser):
    """One viewer after another at one player."""

    wait_time = constant(0)
    connection_timeout = network_timeout = 15.0

    @task
    def view(self) -> None:
        """A view, from page load to its last answer."""
        number, BOOK.views = BOOK.views, BOOK.views + 1
        given = _given(self.environment)
        process = getattr(self.environment.runner, "worker_index", 0)
        story = story_of(given.seed + _PROCESS * process, number, STORY_SECONDS)
        record = ViewRecord(story, wall_ms())
        domain = (self.host or "").split("//")[1]
        visit = Visit(record, self._post, domain=domain, sleep=gevent.sleep, now=time.monotonic)
        BOOK.playing += 1
        try:
            is_known = visit.live()
        finally:
            BOOK.playing -= 1
        BOOK.ledger.settle(record, is_known=is_known)

    def _post(self, view: ViewRecord, beacons: Sequence[SimulatedBeacon], body: bytes, is_closing: bool) -> Answer:
        player = view.story.player
        path, name = path_of(player), f"{route_of(player)} ({player.client})"
        headers = headers_of(player, is_closing=is_closing)
        # It is sent as it is; the types speak of text and forms alone.
        data: Any = body
        with self.client.post(path, data=data, headers=headers, name=name, catch_response=True) as answer:
            ok = 200 <= answer.status_code < 300
            if ok:
                answer.success()
            else:
                answer.failure(f"{answer.status_code}")
            wait = (answer.headers or {}).get("Retry-After", "0")
        BOOK.ledger.posted(view, beacons, ok=ok)
        return Answer(ok, int(wait) * 1_000 if wait.isdigit() else 0)


@events.report_to_master.add_listener
def _report(client_id: str, data: dict[str, Any]) -> None:  # noqa: ARG001 - locust names its arguments
    data["account"], data["playing"] = BOOK.reader.read(), BOOK.playing


@events.worker_report.add_listener
def _take(client_id: str, data: dict[str, Any]) -> None:
    BOOK.accounts.take(client_id, data["account"])
    BOOK.playing_elsewhere[client_id] = data["playing"]


@events.quitting.add_listener
def _end(environment: Any, **_: Any) -> None:
    """The first process writes the truth of all, and its exit code shows whether every POST was answered."""
    if type(environment.runner).__name__ == "WorkerRunner":
        return
    if type(environment.runner).__name__ == "LocalRunner":
        BOOK.accounts.take("local", BOOK.reader.read())
    given, totals = _given(environment), BOOK.accounts.totals
    write_truth(Path(given.truth), seed=given.seed, totals=totals, rows=BOOK.accounts.rows, done=True)
    environment.process_exit_code = 1 if totals.views_unresolved or not BOOK.accounts.rows else 0
