"""`python -m tests.chaos.warehouse`: finished views while what stores and answers them dies; hot rows = warehouse = a recount.

Revisions, tombstones, late and moved views come in committed and aborted transactions. Meanwhile services `serving`, `finalizer`,
`query` and `dashboard`, Postgres and the broker are killed, and started again as an orchestrator does. Afterwards the Delta tables,
rollups, blocks, hot rows and their sums, and what the API answers, must be a recount of topic `views` by another engine. Exits 1
and keeps its folder when one is not.
"""

import json
import random
import sys
import threading
import time
import traceback
import urllib.parse
import urllib.request
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import wait_until
from services.accounts.commands import make_tenant
from services.accounts.store import schema as accounts_schema
from services.finalizer.serving.database import Serving
from shared.schemas.view import View
from tests.chaos.command import carry_out_rounds
from tests.chaos.faults import let_pass
from tests.integration.dashboard.dashboard_parts import WATCHER, start_dashboard, start_query
from tests.integration.finalizer.expecting import expect_truth
from tests.integration.finalizer.finalizing import MORNING_MS, Installation, Topic, newest
from tests.integration.parts.brokers import broker_with_topics
from tests.integration.serving.hot import DAY_MS, SESSION_MS, Service, generated

FAULTS: Final = (
    "serving killed",
    "serving stopped past its session",
    "finalizer killed",
    "Postgres killed",
    "query killed",
    "dashboard killed",
    "broker killed",
)
#: A run of so many rounds is a result that docs/results.md shows.
RESULT_ROUNDS: Final = 3
READY_SECONDS_MAX: Final = 300.0
SETTLE_SECONDS_MAX: Final = 600.0
#: Seconds between two faults: what was killed has begun to work again, or has not.
BETWEEN_SECONDS: Final = (2.0, 15.0)
#: Slices that both have alike are the warehouse's after a second.
_COMPARED: Final = {"compare_seconds": "1", "closed_seconds": "0"}
#: All that views say of when they were.
_RANGE: Final = {"from": MORNING_MS - 3 * DAY_MS, "to": MORNING_MS + 6 * DAY_MS}


@dataclass(frozen=True)
class Options:
    """One run: each round has every fault once, in any order, and transactions all the time."""

    rounds: int
    seed: int = 1
    views: int = 400


@dataclass
class Result:
    """What a run came to."""

    faults: Counter[str]
    transactions: Counter[str]
    records: int
    views: int
    wrong: list[str] = field(default_factory=list)

    def table(self) -> str:
        """The result in words."""
        lines = [
            f"transactions {self.transactions['committed']:,} committed, {self.transactions['aborted']:,} aborted",
            f"records {self.records:,} of {self.views:,} views",
            *(f"{number:4} times: {fault}" for fault, number in sorted(self.faults.items())),
        ]
        lines += [f"WRONG: {one}" for one in self.wrong] or [
            "warehouse, rollups, blocks, hot rows, sums and answers are a recount of topic views"
        ]
        return "\n".join(lines)


class Sender:
    """Sends transactions of views from a thread of its own, through faults of the broker, until it is stopped."""

    def __init__(self, bootstrap: str, options: Options) -> None:
        self._bootstrap = bootstrap
        self._views = options.views
        self._chance = random.Random(options.seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent: list[View] = []
        self.transactions = Counter[str]()

    def start(self) -> None:
        """Begins to send."""
        self._thread.start()

    def stop(self) -> None:
        """Returns when the last transaction has ended."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopping.wait(0.2):
            number += 1
            views, is_committed = self._some(), self._chance.random() < 0.8
            while True:
                try:
                    # A client of its own: the id's next owner ends what a killed broker left open.
                    Topic(self._bootstrap, "chaos").send(views, commit=is_committed)
                    break
                except Exception as error:
                    # It may have been committed: its views are sent again, which changes nothing.
                    if self._stopping.is_set():
                        raise
                    self.transactions[type(error).__name__] += 1
                    is_committed = True
            self.transactions["committed" if is_committed else "aborted"] += 1
            if is_committed:
                self.sent += views

    def _some(self) -> list[View]:
        """Revisions in any order; one of a name and number is always the same."""
        found = []
        for _ in range(self._chance.randrange(1, 30)):
            name, revision = f"view-{self._chance.randrange(self._views)}", self._chance.randrange(1, 6)
            chance = random.Random(f"{name} {revision}")
            given = {"country": chance.choice([None, "DE", "FR"]), "bitrate_integral": chance.randrange(1 << 40)}
            found.append(generated(chance, name, revision, **given))
        return found


class Scene:
    """Everything at work."""

    def __init__(self, broker: Broker, postgres: Postgres, folder: Path, options: Options) -> None:
        self._broker, self._postgres = broker, postgres
        self._chance = random.Random(options.seed)
        self.faults = Counter[str]()
        self.installation = Installation(folder, broker.bootstrap, postgres.dsn)
        self._finalizer = self.installation.child("stream")
        self._children = [self._finalizer]
        self._serving: list[Service] = []
        self._port = free_port()

    def begin(self) -> None:
        """Starts everything. What has started before an error is in `end`."""
        dsn, folder = self._postgres.dsn, self.installation.folder
        accounts_schema.migrate(dsn)
        with closing(Serving(dsn, away_seconds_max=20, stop=threading.Event())) as serving:
            serving.open()
            serving.keep_views(0)
        self._finalizer.start()
        for number in range(2):
            service = Service(self._broker.bootstrap, dsn, folder / f"serving-{number}.log", **_COMPARED)
            self._serving.append(service)
            self._children.append(service.child)
        query_port, lookup_port = free_port(), free_port()
        self._query = start_query(folder, self._postgres, folder / "warehouse", query_port)
        self._children.append(self._query)
        query_url = f"http://127.0.0.1:{query_port}"
        self._dashboard = start_dashboard(folder, self._broker, dsn, self._port, lookup_port, query_url=query_url)
        self._children.append(self._dashboard)
        wait_until(self.installation.is_ready, READY_SECONDS_MAX, "the finalizer lands views")

    def start(self) -> None:
        """Starts what does not run, as an orchestrator does."""
        for child in self._children:
            if not child.is_running:
                child.start()

    def end(self) -> None:
        """Ends the processes."""
        for child in self._children:
            child.kill()

    def inject(self, fault: str) -> None:
        """One fault; afterwards everything is started again."""
        self.faults[fault] += 1
        serving = self._chance.choice(self._serving)
        match fault:
            case "serving killed":
                serving.child.kill()
            case "serving stopped past its session":
                serving.pause()
                let_pass(1.5 * SESSION_MS / 1_000)
                serving.wake()
            case "finalizer killed":
                self._finalizer.kill()
            case "Postgres killed":
                self._postgres.kill()
                let_pass(self._chance.uniform(0.0, 5.0))
                self._postgres.start()
            case "query killed":
                self._query.kill()
            case "dashboard killed":
                self._dashboard.kill()
            case _:
                self._broker.kill()
                self._broker.start()
        self.start()

    def differs(self, truth: list[View]) -> str:
        """What is not a recount of these views; empty where all is."""
        try:
            expect_truth(self.installation, truth)
        except AssertionError as error:
            # Outside of pytest an assertion says nothing but where it stands.
            return f"not so: {traceback.extract_tb(error.__traceback__)[-1].line}"
        for customer in sorted({view.customer_id for view in truth}):
            counted = Counter(one.country for one in truth if one.customer_id == customer and not one.deleted)
            if (found := self._by_country(customer)) != counted:
                return f"the API says {dict(found)} of {customer}, not {dict(counted)}"
        return ""

    def _by_country(self, customer: str) -> Counter[str | None]:
        asked = {"customer": customer, "by": "country", "metrics": "views", **_RANGE}
        token = make_tenant(self._postgres.dsn, organisation="Tests", email=WATCHER).token
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/v1/breakdown?{urllib.parse.urlencode(asked)}",
            headers={"Authorization": f"Bearer {token}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            content = json.load(answer)
        return Counter({group["key"][0]: group["n"] for group in content["groups"]})


def run(options: Options, folder: Path) -> Result:
    """Runs, waits until all is settled, and judges."""
    postgres = Postgres(folder / "postgres")
    try:
        postgres.start()
        with broker_with_topics(folder / "broker") as broker:
            return _run(broker, postgres, folder, options)
    finally:
        postgres.remove()


def _run(broker: Broker, postgres: Postgres, folder: Path, options: Options) -> Result:
    scene, sender = Scene(broker, postgres, folder, options), Sender(broker.bootstrap, options)
    chance = random.Random(options.seed)
    try:
        scene.begin()
        sender.start()
        try:
            for _ in range(options.rounds):
                for fault in chance.sample(FAULTS, len(FAULTS)):
                    let_pass(chance.uniform(*BETWEEN_SECONDS))
                    scene.inject(fault)
        finally:
            sender.stop()
        truth = newest(sender.sent)
        wrong = _settled(scene, truth)
    finally:
        scene.end()
    return Result(scene.faults, sender.transactions, len(sender.sent), len(truth), wrong)


def _settled(scene: Scene, truth: list[View]) -> list[str]:
    """What is still wrong when it should have settled."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while True:
        scene.start()
        try:
            wrong = scene.differs(truth)
        except OSError as error:
            wrong = f"nobody answers: {error}"
        if not wrong or time.monotonic() > deadline:
            return [wrong] if wrong else []
        let_pass(2.0)


def main() -> int:
    """Runs, prints, and says where the logs are when something is wrong."""
    return carry_out_rounds(
        lambda rounds, seed, folder: run(Options(rounds, seed), folder),
        module="warehouse",
        about=__doc__,
        rounds=RESULT_ROUNDS,
        title="Finished views: hot rows, warehouse and answers through kills",
        checked="Delta tables, rollups, blocks, hot rows, their sums and the API's answers are a recount by another engine",
    )


if __name__ == "__main__":
    sys.exit(main())
