"""deploy/compose.yaml as it is, under a docker daemon: any one container is killed under load, and no view is lost or doubled.

The kernel kills the container's first process, as it does where memory runs out; `restart` of the compose file starts it again.
Load is on at every kill: each has players of its own, who play on until it is over.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient

from deploy.demo.comparing.observe import read_truths
from deploy.demo.comparing.watch import Watch
from deploy.demo.display import Display
from deploy.demo.play import Playing
from deploy.demo.viewers.crowd import Players
from deploy.images import build
from deploy.images.daemon import Daemon
from deploy.images.stack import Stack
from deploy.images.third_party import STAGES, build_stand_in
from deploy.local.paths import LOCAL, ROOT
from deploy.local.process import DeadlinePassed, wait_until
from deploy.local.supervisor import Supervisor
from shared.metrics import ServiceName

pytestmark = [pytest.mark.containers, pytest.mark.timeout(3_600)]

SERVICES: tuple[ServiceName, ...] = ("collector", "processor", "finalizer", "serving", "query", "dashboard")
BROKERS = ("kafka-1", "kafka-2", "kafka-3")
#: Grafana's image is in no package. Prometheus needs nobody and is needed by nobody.
STARTED = (
    *("collector-0", "collector-1", "finalizer", "serving", "query", "dashboard", "prometheus"),
    *(f"processor-{host}-{kind}-{number}" for host in (0, 1) for kind in ("slot", "standby") for number in (0, 1)),
)
KILLED = (
    "kafka-1",
    "collector-0",
    "kafka-2",
    "processor-0-slot-0",
    "processor-1-standby-0",
    "finalizer",
    "serving",
    "kafka-3",
    "postgres",
    "collector-1",
    "dashboard",
)
#: Of the players of one kill.
VIEWS = 60
PLAY_SECONDS = 20
#: For one container to be back, or for players to send what was not answered, however busy the machine is.
SECONDS_MAX = 600.0


@pytest.fixture(scope="module")
def stack(daemon: Daemon) -> Iterator[Stack]:
    for service in SERVICES:
        build.build(service, environ=daemon.environ)
    for third_party in STAGES:
        build_stand_in(third_party, daemon.environ)
    folder = LOCAL / "compose-test"
    shutil.rmtree(folder, ignore_errors=True)
    stack = Stack(folder, project="playhead-test", environ=daemon.environ)
    stack.prepare()
    # What an earlier run left.
    stack.down()
    try:
        stack.up(*STARTED)
        stack.wait_healthy(*STARTED, *BROKERS, "postgres", seconds=SECONDS_MAX)
        yield stack
    finally:
        stack.down()


def test_no_view_is_lost_or_doubled_whichever_container_is_killed(stack: Stack) -> None:
    supervisor = Supervisor(stack.folder, cwd=ROOT)
    display = Display()
    try:
        for number, victim in enumerate(KILLED):
            kill_under_load(stack, supervisor, number, victim)
            display.step(f"{victim} was killed and is back")
        stack.collectors_restarted = True
        stack.wait_healthy(*STARTED, *BROKERS, "postgres", seconds=SECONDS_MAX)
        expect_scraped(stack)
        with Watch(stack.settings, stack, stack.postgres_dsn) as watch:
            Playing(supervisor, watch, display).land(lambda: None)
            verdict = watch.compare()
    finally:
        supervisor.stop()
    verdict.show(display)
    truth = read_truths(stack.truths)
    assert truth.totals["views_unresolved"] == 0
    assert truth.totals["views_started"] == len(truth.views) > len(KILLED) * VIEWS // 2
    assert verdict.ok, [line for line in verdict.lines if line.ok is False]


def expect_scraped(stack: Stack) -> None:
    """Prometheus reads the metrics of everything of ours that runs, under the names that rules and dashboards know."""
    ours = [name for name in STARTED if name != "prometheus"]
    try:
        wait_until(lambda: set(stack.scraped().values()) == {"up"}, SECONDS_MAX, "all are scraped", every=0.5)
    except DeadlinePassed as late:
        raise DeadlinePassed(f"{late}; {stack.scraped()}") from None
    assert sorted(instance.partition(":")[0] for instance in stack.scraped()) == sorted(ours)


def kill_under_load(stack: Stack, supervisor: Supervisor, number: int, victim: str) -> None:
    """Returns once the victim is back, its copies are whole, and the players who played meanwhile are all answered."""
    truth = stack.new_truth()
    # To the collector that is killed, else to either.
    url = stack.collector_urls[int(victim[-1]) if victim.startswith("collector") else number % 2]
    players = replace(Players(VIEWS, PLAY_SECONDS, seed=number).service(url, truth), name=f"players-{number}")
    supervisor.start(players)
    supervisor.wait(
        lambda: read_truths([truth]).total("beacons_acked") > VIEWS, SECONDS_MAX, "beacons are acknowledged"
    )
    before = stack.state(victim)
    assert not read_truths([truth]).done
    os.kill(before["Pid"], signal.SIGKILL)

    def is_back() -> bool:
        return bool(stack.state(victim)["StartedAt"] != before["StartedAt"]) and stack.is_healthy(victim)

    wait_until(is_back, SECONDS_MAX, f"{victim} is started again and healthy", every=0.5)
    # A second broker is not to die while the copies of the first are behind.
    wait_until(lambda: all_in_sync(stack), SECONDS_MAX, "every partition has all its copies", every=0.5)
    supervisor.wait(lambda: supervisor.exit_code(players.name) == 0, SECONDS_MAX, "every player has its answers")


def all_in_sync(stack: Stack) -> bool:
    admin = AdminClient({"bootstrap.servers": stack.settings.kafka_bootstrap, "log_level": 0})
    topics = admin.list_topics(timeout=30).topics.values()
    return all(len(partition.isrs) == len(BROKERS) for topic in topics for partition in topic.partitions.values())
