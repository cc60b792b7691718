"""Catalogue, rules and dashboards are held to the metrics that services have."""

import functools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client import REGISTRY

from deploy.local.paths import ROOT
from deploy.observability import dashboards
from deploy.observability.catalogue import DOCUMENT, written
from services.rim.telemetry import metrics as countable
from shared import metrics
from shared.metrics import Metric, ServiceName, declared, of_service

RULES = ROOT / "deploy/observability/rules.yaml"
#: What Prometheus and its client have by themselves.
_NOT_OURS = frozenset({"up", "ALERTS", "process_cpu_seconds_total"})
_KINDS = {"counter": "counter", "gauge": "gauge", "histogram": "histogram"}


@functools.cache
def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def queries(board: Dashboard) -> list[str]:
    document = json.loads(dashboards.to_json(board))
    return [target["expr"] for panel in document["panels"] for target in panel["targets"]]


def series(query: str) -> set[str]:
    """The names of series in a query: words that are followed by no parenthesis, outside texts, labels and clauses."""
    bare = re.sub(r"\"[^\"]*\"|\{[^}]*\}|\[[^]]*\]|\b(?:by|on|ignoring) \([^)]*\)", "", query)
    words = set(re.findall(r"[A-Za-z_:][A-Za-z0-9_:]*(?![A-Za-z0-9_:]*\()", bare))
    return words - {"and", "or", "unless", "sum", "max", "min"}


@functools.cache
def known() -> set[str]:
    names = {metric.name for metric in declared()} | {rule["record"] for rule in rules() if "record" in rule}
    return names | {f"{metric.name}_bucket" for metric in declared() if metric.kind == "histogram"} | _NOT_OURS


def test_the_catalogue_of_the_docs_is_that_of_the_code() -> None:
    text = DOCUMENT.read_text()
    assert written(text) == text, "run python -m deploy.observability.catalogue"


@pytest.mark.parametrize("service", get_args(ServiceName))
def test_a_service_has_its_metrics_from_the_start_and_no_others(service: ServiceName) -> None:
    countable.declare(service)
    families = {family.name: family for family in REGISTRY.collect() if family.name.startswith("playhead_")}
    for metric in of_service(service):
        family = families[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (_KINDS[metric.kind], metric.meaning)
    undeclared = families.keys() - {metric.name.removesuffix("_total") for metric in declared()}
    assert undeclared == set()


def test_every_metric_is_counted_by_its_own_service() -> None:
    used: dict[str, set[str]] = {}
    for file in (ROOT / "services").rglob("*.py"):
        service = file.relative_to(ROOT / "services").parts[0]
        for name in re.findall(r"\b[A-Z][A-Z_]+\b", file.read_text()):
            if isinstance(getattr(metrics, name, None), Metric):
                used.setdefault(name, set()).add(service)
    assert used.keys() == {name for name, value in vars(metrics).items() if isinstance(value, Metric)}
    for name, services in used.items():
        owner = name.split("_")[0].lower()
        assert services == {owner if owner in get_args(ServiceName) else "rim"}, name


def test_a_counter_whose_every_count_raises_an_alert_begins_at_0() -> None:
    """A series that appears with its first count adds nothing that a rule could see."""
    asked = {
        name
        for rule in rules()
        if "alert" in rule and rule["expr"].rstrip().endswith("> 0")
        for name in re.findall(r"increase\((\w+)", rule["expr"])
    }
    sources = [file.read_text() for file in (ROOT / "services").rglob("*.py")]
    begun = {name for source in sources for name in re.findall(r"(?<!\.)\bbegin\((?:metrics\.)?([A-Z_]+)", source)}
    assert asked
    assert asked == {getattr(metrics, name).name for name in begun}


def test_every_metric_is_on_a_dashboard_or_in_a_rule() -> None:
    queried = {name for rule in rules() for name in series(rule["expr"])}
    for board in dashboards.ALL:
        queried |= {name for query in queries(dashboards.build(board)) for name in series(query)}
    unseen = {m.name for m in declared() if not {m.name, f"{m.name}_bucket"} & queried}
    assert unseen == set()


def test_rules_and_dashboards_ask_for_nothing_that_does_not_exist() -> None:
    for rule in rules():
        assert series(rule["expr"]) <= known(), rule
    for board in dashboards.ALL:
        for query in queries(dashboards.build(board)):
            assert series(query) <= known(), (board, query)


def test_labels_of_queries_are_those_of_the_metric() -> None:
    labels = {metric.name: set(metric.labels) | {"job", "instance", "le"} for metric in declared()}
    exprs = [rule["expr"] for rule in rules()]
    exprs += [query for board in dashboards.ALL for query in queries(dashboards.build(board))]
    for expr in exprs:
        for name, matchers in re.findall(r"(playhead_\w+?)(?:_bucket)?\{([^}]*)\}", expr):
            assert set(re.findall(r"(\w+)\s*[=!]", matchers)) <= labels[name], expr


@pytest.mark.parametrize("name", [*dashboards.ALL, dashboards.EXPERIENCE])
def test_a_dashboard_is_of_grafanas_schema(name: str) -> None:
    built = dashboards.build(name) if name in dashboards.ALL else dashboards.build_experience()
    document = json.loads(dashboards.to_json(built))
    again = json.loads(dashboards.to_json(Dashboard.from_json(document)))
    assert again == document
    assert document["uid"] == name
    titles = Counter(panel["title"] for panel in document["panels"])
    assert set(titles.values()) == {1}
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in document["panels"]]
    assert len(set(places)) == len(places)


def test_the_processor_has_a_heat_map_by_partition() -> None:
    document = json.loads(dashboards.to_json(dashboards.build("playhead-processor")))
    heat = [panel for panel in document["panels"] if panel["type"] == "heatmap"]
    assert any("sum by (partition)" in target["expr"] for panel in heat for target in panel["targets"])


def test_the_command_writes_every_dashboard(tmp_path: Path) -> None:
    assert dashboards.main([str(tmp_path / "new")]) == 0
    assert {file.stem for file in (tmp_path / "new").glob("*.json")} == {*dashboards.ALL, dashboards.EXPERIENCE}


def test_every_alert_says_what_and_how_urgent_and_stands_in_the_runbook() -> None:
    headings = set(re.findall(r"^### (\w+)$", (ROOT / "docs/runbook.md").read_text(), re.M))
    alerts = {rule["alert"]: rule for rule in rules() if "alert" in rule}
    assert {heading for heading in headings if heading.startswith("Playhead")} == alerts.keys()
    for alert in alerts.values():
        assert alert["labels"]["severity"] in ("page", "ticket")
        assert alert["annotations"]["summary"]


def test_every_alert_is_seen_to_fire_and_to_be_silent() -> None:
    tests = yaml.safe_load((ROOT / "deploy/observability/rules_test.yaml").read_text())["tests"]
    cases = [case for test in tests for case in test.get("alert_rule_test", [])]
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts
