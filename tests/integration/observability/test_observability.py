"""Rules fire as they are meant to, and Prometheus itself understands every query of the dashboards."""

import http.client
import json
import os
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from deploy.local.paths import PROMETHEUS, ROOT
from deploy.local.ports import free_port
from deploy.local.process import Child
from deploy.observability import dashboards
from services.rim.admin.admin import AdminServer, Check
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_BEACONS_ACCEPTED, PROCESSOR_LAG_RECORDS, ServiceName
from shared.settings import Settings

pytestmark = pytest.mark.integration

RULES = ROOT / "deploy/observability/rules.yaml"
SECONDS_MAX = 120.0

_CONFIG = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: playhead-collector
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


#: Go collects garbage less often and in one thread: a fifth less CPU time, for some 100 MB.
_GO: Final = {"GOGC": "400", "GOMAXPROCS": "1"}


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROMETHEUS / "promtool", *map(str, arguments)],
        env=os.environ | _GO,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


class Prometheus:
    """A server of its own that scrapes this process' metrics."""

    def __init__(self, folder: Path, scraped: int) -> None:
        self.port = free_port()
        config = folder / "prometheus.yml"
        config.write_text(_CONFIG.format(rules=RULES, port=scraped))
        command = [
            str(PROMETHEUS / "prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        self.child = Child("prometheus", command, log_file=folder / "prometheus.log")

    def ask(self, path: str, **query: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        try:
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
            document: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return document

    def has(self, query: str) -> bool:
        try:
            return bool(self.ask("query", query=query).get("data", {}).get("result"))
        except (OSError, ValueError):
            # It listens before it answers, and says so in words.
            return False


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    for service in get_args(ServiceName):
        metrics.declare(service)
    metrics.counter(COLLECTOR_BEACONS_ACCEPTED).labels("mux").inc()
    metrics.gauge(PROCESSOR_LAG_RECORDS).labels("0").set(3)
    port = free_port()
    admin = AdminServer("127.0.0.1", port, Settings(), is_alive=lambda: Check(True), is_ready=lambda: Check(True))
    admin.start()
    server = Prometheus(tmp_path, port)
    server.child.start()
    try:
        yield server
    finally:
        server.child.stop(SECONDS_MAX)
        admin.stop()


def test_the_rules_are_sound_and_every_alert_fires_on_what_it_is_for() -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = promtool("test", "rules", RULES.with_name("rules_test.yaml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_prometheus_has_the_rules_and_answers_every_query_of_the_dashboards(prometheus: Prometheus) -> None:
    prometheus.child.wait_until(lambda: prometheus.has("up == 1"), SECONDS_MAX, "scraping")
    prometheus.child.wait_until(lambda: prometheus.has("playhead:lag:records == 3"), SECONDS_MAX, "rules at work")
    groups = prometheus.ask("rules")["data"]["groups"]
    # Some have not had their turn yet.
    assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}

    for name in dashboards.ALL:
        for panel in json.loads(dashboards.to_json(dashboards.build(name)))["panels"]:
            for target in panel["targets"]:
                answer = prometheus.ask("query", query=target["expr"].replace("$__rate_interval", "1m"))
                assert answer["status"] == "success", (name, panel["title"], answer)
    # A scrape that is not answered within its second ends every series, until the next one.
    lag = "sum by (partition) (playhead_processor_lag_records)"
    prometheus.child.wait_until(lambda: prometheus.has(lag), SECONDS_MAX, lag)
    assert not prometheus.has("playhead_nothing_of_that_name")
