"""One run of the demo: starts every process, plays, waits until everything has landed, compares, stops."""

import fcntl
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.demo import accounts, addresses, customers
from deploy.demo.applications.part import Part, Refused
from deploy.demo.applications.playing import play_all
from deploy.demo.comparing import asking
from deploy.demo.comparing.alerting import Alert
from deploy.demo.comparing.watch import Verdict, Watch
from deploy.demo.display import Display
from deploy.demo.play import Playing
from deploy.demo.services import DemoServices
from deploy.demo.shortened import shortened
from deploy.demo.viewers import places
from deploy.demo.viewers.clients_doc import snippets
from deploy.demo.viewers.crowd import Crowd, audience
from deploy.local.broker import Broker
from deploy.local.leftovers import Leftovers
from deploy.local.paths import ROOT
from deploy.local.postgres import Postgres
from deploy.local.process import DeadlinePassed, ProcessDied
from deploy.local.supervisor import Supervisor
from deploy.topics import create_topics
from loadtest.incident import Incident
from services.rim.kafka.connection import TopicsWrong
from shared.settings import Settings

EXIT_OK: Final = 0
EXIT_DIFFERS: Final = 1
EXIT_DIED: Final = 2
EXIT_INTERRUPTED: Final = 130


class NotOurs(ValueError):
    """The folder holds something else than a demo."""


class AnotherRuns(RuntimeError):
    """A demo of this checkout is running already."""


@dataclass(frozen=True)
class Play:
    """Who plays in a run, which other parts are shown, and who is given the verdict."""

    crowd: Crowd
    parts: Sequence[Part] = ()
    judged: Callable[[Verdict], None] = lambda _: None
    #: How many go on playing while the demo stays up.
    live: int = 0
    #: What happens to some of them.
    incident: Incident | None = None


class Demo:
    """One run, from an empty folder to the verdict."""

    def __init__(self, folder: Path, play: Play, display: Display) -> None:
        self._folder = folder
        self._how = play.crowd
        self._parts = play.parts
        self._judged = play.judged
        self._live = play.live
        self._incident = play.incident
        self._display = display
        self._broker = Broker(folder / "broker")
        self._postgres = Postgres(folder / "postgres")
        self._supervisor = Supervisor(folder, cwd=ROOT)
        self._alert = Alert(play.incident) if play.incident is not None else None

    def run(self, *, keep: bool) -> int:
        """Everything but the stopping; the exit code. Raises `ProcessDied`, `DeadlinePassed`, `TopicsWrong`."""
        settings = self._start_stores()
        services = self._start_services()
        addresses.write(self._folder, services.addresses())
        if keep:
            self._display.say(
                "Send no views of your own yet: the comparison counts them. Wait until its table is printed."
            )
        api = asking.Api(services.dashboard_port, services.addresses()["API_TOKEN"])
        if self._alert is not None:
            self._alert.prepare(api)
            self._display.step("a rule waits for the incident; this process is its receiver")
        with Watch(settings, services, self._postgres.dsn) as watch:
            playing = Playing(self._supervisor, watch, self._display)
            if self._how.waits_for_all:
                self._supervisor.wait_ready("finalizer")
                self._display.step("finalizer is ready")
            playing.play(self._how, services.collector_url, services.truth)
            playing.land(lambda: self._supervisor.wait_ready("finalizer"))
            verdict = watch.compare()
            if self._incident is not None:
                truth = watch.truth
                verdict = verdict.beside(asking.lines(api, truth.views, self._incident, truth.began_ms))
                if self._alert is not None:
                    verdict = verdict.beside([self._alert.line(api, truth.views, truth.began_ms)])
        self._display.step("the comparison is over: what is sent from now on changes nothing of it")
        self._judged(verdict)
        verdict.show(self._display)
        if self._incident is not None:
            self._display.say(asking.story(self._incident))
        lines = play_all(self._parts, services, self._supervisor, settings, self._display)
        if keep:
            self._keep(services)
        return EXIT_OK if verdict.ok and all(line.ok for line in lines) else EXIT_DIFFERS

    def stop(self) -> bool:
        """Stops everything in reverse order; whether every process ended cleanly."""
        self._display.settle()
        self._display.step("stopping")
        endings = self._supervisor.stop()
        if self._alert is not None:
            self._alert.stop()
        self._postgres.remove()
        unclean = [ending for ending in endings if not ending.clean]
        for ending in unclean:
            self._display.step(
                f"{ending.name} left something behind: exit code {ending.exit_code} after {ending.seconds:.1f} s, "
                f"see {self._folder / 'logs' / ending.name}.log"
            )
        self._display.step(f"stopped {len(endings)} processes, {len(endings) - len(unclean)} cleanly")
        return not unclean

    def _start_stores(self) -> Settings:
        self._broker.launch()
        self._supervisor.adopt(self._broker.child, self._broker.stop)
        self._postgres.start()
        assert self._postgres.child is not None
        self._supervisor.adopt(self._postgres.child, self._postgres.stop)
        customers.make_table(self._postgres.dsn)
        self._display.step(f"Postgres runs (pid {self._postgres.child.pid})")
        self._broker.wait_ready()
        self._display.step(f"Kafka runs on {self._broker.bootstrap} (pid {self._broker.child.pid})")
        settings = Settings(kafka_bootstrap=self._broker.bootstrap, topics_profile="laptop", log_format="console")
        created = create_topics(settings)
        self._display.step(f"topics: {', '.join(created)}, {settings.profile.view_partitions} partitions each")
        return settings

    def _start_services(self) -> DemoServices:
        services = DemoServices(
            self._folder,
            bootstrap=self._broker.bootstrap,
            postgres_dsn=self._postgres.dsn,
            parts=self._parts,
            # Before the dashboard starts: it would offer the first owner a link.
            api_token=accounts.token(self._postgres.dsn),
        )
        services.places_file.write_bytes(places.database())
        processors, collectors = services.processors(), services.collectors()
        notifying = services.alerting() if self._incident is not None else []
        early = [*processors, *collectors, services.dashboard(), *notifying]
        # Players need these first; Spark, the slowest, may come up while they play.
        # The finalizer makes the tables of hot rows before it starts Spark.
        for service in (*early, services.finalizer(), services.serving(), services.query()):
            self._supervisor.start(service)
        self._supervisor.wait_ready(*(service.name for service in early))
        for name in (service.name for service in early):
            self._display.step(f"{name} is ready (pid {self._supervisor.pid(name)})")
        self._display.step(f"collectors on {services.collector_url}, page on {services.page_url}")
        self._display.step(
            f"log in, once and within a quarter of an hour: {accounts.link(self._postgres.dsn, services.page_url)}"
        )
        return services

    def _keep(self, services: DemoServices) -> None:
        found = services.addresses()
        self._display.say(
            f"\n{addresses.listed(found, self._folder / addresses.FILE_NAME)}\n\n{snippets(services.collector_port)}\n"
        )
        if self._live:
            # Another seed than the players': the same views would be repetitions.
            self._supervisor.start(audience(services.collector_url, self._live, seed=self._how.seed + 1))
            self._display.say(f"{self._live} simulated viewers play for as long as the demo is up (LIVE=n, 0: none).")
        link = accounts.link(self._postgres.dsn, services.page_url)
        self._display.say(f"The page stays open: {services.page_url}\nLog in, once: {link}\nCtrl-C ends everything.")
        # Ctrl-C is the way to end it and changes nothing of the verdict.
        with suppress(KeyboardInterrupt):
            while True:
                self._supervisor.check()
                time.sleep(0.5)


def drive(folder: Path, play: Play, display: Display, *, keep: bool = False) -> int:
    """A whole run, from an empty folder to the last process's end; its exit code. Only one runs in a folder."""
    try:
        with _only_one(folder.with_name(folder.name + ".lock")):
            return _run(folder, play, display, keep=keep)
    except AnotherRuns as problem:
        print(f"demo: {problem}", file=sys.stderr)
        return EXIT_DIED
    except Exception:  # noqa: BLE001 - the command's top
        # For any error: no difference is known, and Python's own exit code 1 would report one.
        traceback.print_exc()
        return EXIT_DIED


def _run(folder: Path, play: Play, display: Display, *, keep: bool) -> int:
    for left in Leftovers(folder / "processes.json").end():
        display.step(f"ended what an earlier run left behind: {left}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    display.say("The demo shortens some settings (default in brackets), so that views finish while one watches:")
    for setting in shortened():
        display.say(f"  {setting.variable}={setting.value} ({setting.default})")
    demo = Demo(folder, play, display)
    code = EXIT_OK
    with display:
        try:
            code = demo.run(keep=keep)
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        except (ProcessDied, DeadlinePassed, Refused, TopicsWrong, asking.NotAnswered) as problem:
            display.settle()
            display.say(f"demo: {problem}")
            code = EXIT_DIED
        finally:
            # From here on every process is given its time to end; a second Ctrl-C must not cut that short.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            clean = demo.stop()
    return code if clean or code != EXIT_OK else EXIT_DIED


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnotherRuns(f"a demo of this checkout is running already (it holds {lock})") from None
        yield


def demo_folder(given: Path, default: Path) -> Path:
    """The folder of a run, which may be emptied: it is new or empty, or the default one, or a demo's. Raises `NotOurs`."""
    folder = given.absolute()
    is_ours = folder == default or not folder.exists() or not any(folder.iterdir())
    if not is_ours and not (folder / "broker" / "server.properties").exists():
        raise NotOurs(f"{folder} holds something else than a demo")
    return folder
