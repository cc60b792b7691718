"""Runs deploy/compose.yaml as a stack: starts it, queries it, and removes it with all that it created.

Works with the docker at hand, with `docker compose` or, where only that is installed, `docker-compose` 1.29.
"""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.demo import customers
from deploy.demo.shortened import FINISH_MS, triggers
from deploy.images import environment
from deploy.images.third_party import COMPOSE_FILE
from deploy.local.ports import preferred_or_free
from deploy.local.process import DeadlinePassed, wait_until
from services.processor.applications.video_views.settings import VideoViewsSettings
from shared.settings import Settings

#: Ports of this machine: variable of the compose file -> the one it has by default.
PORTS: Final[Mapping[str, int]] = {
    "KAFKA_1_PORT": 19092,
    "KAFKA_2_PORT": 19093,
    "KAFKA_3_PORT": 19094,
    "COLLECTOR_0_PORT": 8080,
    "COLLECTOR_0_ADMIN_PORT": 9101,
    "COLLECTOR_1_PORT": 8081,
    "COLLECTOR_1_ADMIN_PORT": 9111,
    "DASHBOARD_PORT": 8090,
    "QUERY_PORT": 8093,
    "POSTGRES_PORT": 15432,
    "PROMETHEUS_PORT": 9090,
    "GRAFANA_PORT": 3000,
}
UP_SECONDS_MAX: Final = 900.0
#: Everything is given two minutes to end, see the compose file.
DOWN_SECONDS_MAX: Final = 300.0
_COMMAND_SECONDS_MAX: Final = 120.0
_LOOK_SECONDS: Final = 0.5
_TABLES: Final = "/warehouse/tables"


class ComposeFailed(RuntimeError):
    """docker or compose failed or is not there; the text is its output."""


@dataclass
class Stack:
    """One stack with secrets and ports of its own. `folder` gets what is fetched from it; views finish as soon as the demo's."""

    folder: Path
    project: str
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    #: The players' accounts, one of each run.
    truths: list[Path] = field(default_factory=list)
    #: Whether a collector was restarted, which resets its counters.
    collectors_restarted: bool = False

    def __post_init__(self) -> None:
        self._ports = {name: preferred_or_free(port) for name, port in PORTS.items()}
        self._containers: dict[str, str] = {}
        self._secrets = environment.made()

    @property
    def settings(self) -> Settings:
        """How this machine's programs reach the brokers."""
        brokers = ",".join(f"127.0.0.1:{self._ports[f'KAFKA_{number}_PORT']}" for number in (1, 2, 3))
        return Settings(kafka_bootstrap=brokers, topics_profile="trial")

    @property
    def collector_urls(self) -> list[str]:
        """Where players post to."""
        return [f"http://localhost:{self._ports[f'COLLECTOR_{number}_PORT']}" for number in (0, 1)]

    @property
    def collector_admin_ports(self) -> Sequence[int] | None:
        """None if a collector was restarted."""
        if self.collectors_restarted:
            return None
        return [self._ports[f"COLLECTOR_{number}_ADMIN_PORT"] for number in (0, 1)]

    @property
    def dashboard_port(self) -> int:
        """The page's port."""
        return self._ports["DASHBOARD_PORT"]

    @property
    def page_url(self) -> str:
        """The page."""
        return f"http://localhost:{self.dashboard_port}/"

    @property
    def postgres_dsn(self) -> str:
        """The serving database."""
        password, port = self._secrets["POSTGRES_PASSWORD"], self._ports["POSTGRES_PORT"]
        return f"postgresql://playhead:{password}@127.0.0.1:{port}/playhead"

    def scraped(self) -> dict[str, str]:
        """What Prometheus last found at each of its targets: host:port -> `up`, or what was wrong. Raises `OSError`."""
        url = f"http://127.0.0.1:{self._ports['PROMETHEUS_PORT']}/api/v1/targets?state=active"
        with urllib.request.urlopen(url, timeout=_COMMAND_SECONDS_MAX) as answer:
            targets = json.load(answer)["data"]["activeTargets"]
        return {
            one["labels"]["instance"]: "up" if one["health"] == "up" else f"{one['health']}: {one['lastError']}"
            for one in targets
        }

    def new_truth(self) -> Path:
        """A file for the account of one more run of players."""
        self.truths.append(self.folder / f"truth-{len(self.truths)}.json")
        return self.truths[-1]

    def prepare(self) -> None:
        """Writes what compose is given besides the compose file; enough to take down what another run left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._overrides.write_text(json.dumps(self.overrides()), encoding="utf-8")

    def up(self, *services: str) -> None:
        """Brings up these services and what they need (none: all), each when what it needs is healthy.

        The customers of simulated players are listed.
        """
        self.prepare()
        self._containers.clear()
        self._compose("up", "--detach", *services, seconds=UP_SECONDS_MAX)
        # Collectors have started after the table was made; they take the players' keys within 5 s.
        customers.list_players(self.postgres_dsn)

    def down(self) -> None:
        """Stops everything and deletes its containers, volumes and networks."""
        self._compose("down", "--volumes", "--timeout", "120", seconds=DOWN_SECONDS_MAX)

    def container(self, service: str) -> str:
        """The id of a service's container."""
        # A restarted container keeps it; a query to compose takes seconds on a busy machine.
        if service not in self._containers:
            self._containers[service] = self._compose("ps", "--quiet", service).strip()
        return self._containers[service]

    def state(self, service: str) -> dict[str, Any]:
        """Docker's state of a service's container: `Running`, `Pid`, `ExitCode`, `Health` where it has a check."""
        inspected = self._run(["docker", "inspect", self.container(service)])
        return dict(json.loads(inspected)[0]["State"])

    def is_healthy(self, service: str) -> bool:
        """Whether its container runs, and its health check, where it has one, passes."""
        state = self.state(service)
        return bool(state["Running"]) and state.get("Health", {"Status": "healthy"})["Status"] == "healthy"

    def wait_healthy(self, *services: str, seconds: float) -> None:
        """Returns when all are healthy. Raises `DeadlinePassed` with the end of the log of the first that is not."""
        for service in services:
            try:
                wait_until(partial(self.is_healthy, service), seconds, f"{service} healthy", every=_LOOK_SECONDS)
            except DeadlinePassed as late:
                raise DeadlinePassed(f"{late}; the end of its log:\n{self.logs(service)}") from None

    def logs(self, service: str, lines: int = 40) -> str:
        """The end of a service's log."""
        return self._run(["docker", "logs", "--tail", str(lines), self.container(service)], stderr=subprocess.STDOUT)

    def fetched_warehouse(self) -> Path:
        """A copy of the present Delta tables: an empty folder while no table exists."""
        copy = self.folder / "tables"
        shutil.rmtree(copy, ignore_errors=True)
        try:
            # In the order of names `_delta_log` is first: every file that it names exists when it is copied.
            self._run(["docker", "cp", f"{self.container('finalizer')}:{_TABLES}", str(copy)])
        except ComposeFailed as problem:
            if "Could not find the file" not in str(problem):
                raise
            copy.mkdir()
        return copy

    @staticmethod
    def overrides() -> dict[str, Any]:
        """What of the compose file is changed: the settings that the demo shortens."""
        finish = {VideoViewsSettings.variable(field): str(value) for field, value in FINISH_MS.items()}
        services = yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8"))["services"]
        shortened = {name: finish for name in services if name.startswith("processor-")} | {"finalizer": triggers()}
        return {"services": {name: {"environment": environ} for name, environ in shortened.items()}}

    @property
    def _overrides(self) -> Path:
        return self.folder / "overrides.json"

    @cached_property
    def _command(self) -> list[str]:
        for command in (["docker", "compose"], ["docker-compose"]):
            if shutil.which(command[0]) is not None:
                done = subprocess.run([*command, "version"], capture_output=True, check=False, env=dict(self.environ))
                if done.returncode == 0:
                    return command
        raise ComposeFailed("neither `docker compose` nor `docker-compose` is installed")

    def _compose(self, *arguments: str, seconds: float = _COMMAND_SECONDS_MAX) -> str:
        files = ("--file", str(COMPOSE_FILE), "--file", str(self._overrides))
        return self._run([*self._command, *files, "--project-name", self.project, *arguments], seconds)

    def _run(
        self, command: Sequence[str], seconds: float = _COMMAND_SECONDS_MAX, *, stderr: int = subprocess.PIPE
    ) -> str:
        ports = {name: str(port) for name, port in self._ports.items()}
        environ = dict(self.environ) | self._secrets | ports
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=seconds, check=False, env=environ
            )
        except subprocess.TimeoutExpired as late:
            raise ComposeFailed(f"{' '.join(command[-4:])}: not within {seconds:g} s") from late
        if done.returncode != 0:
            raise ComposeFailed(f"{' '.join(command[-4:])}: {done.stdout[-2_000:]}{(done.stderr or '')[-4_000:]}")
        return done.stdout
