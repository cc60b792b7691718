"""Each step of the operator's work is shown by a command, and every command, name and setting that it says is one."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.kubernetes.manifests import OVERLAYS
from deploy.local.paths import ROOT
from services.collector.settings import CollectorSettings
from services.dashboard.settings import DashboardSettings
from services.finalizer.__main__ import parser
from services.finalizer.settings import FinalizerSettings
from services.processor.applications.video_views.settings import VideoViewsSettings
from services.processor.settings import ProcessorSettings
from services.serving.settings import ServingSettings
from shared import metrics

TEXT = (ROOT / "docs/runbook.md").read_text()
WORK = TEXT.partition("## The operator's work")[2]
CODE = re.compile(r"`([^`]+)`")
BASE = ROOT / "deploy/kubernetes/base"
#: What exercises a step: tests, the demo, and runs under load that `make test` has a short one of.
SHOWS = re.compile(r"\.venv/bin/python -m (pytest|bench)|make (demo|chaos|rolling)")


def steps() -> dict[str, list[str]]:
    """The numbered steps of each part of the operator's work."""
    parts = {part.partition("\n")[0]: part for part in WORK.split("\n### ")[1:]}
    return {name: re.split(r"\n\d+\. ", part)[1:] for name, part in parts.items()}


def objects() -> list[dict[str, Any]]:
    """What the base of the manifests declares."""
    files = (each for each in sorted(BASE.rglob("*.yaml")) if each.name != "kustomization.yaml")
    return [each for file in files for each in yaml.safe_load_all(file.read_text()) if each]


def commands(beginning: str) -> list[str]:
    return [code for code in CODE.findall(TEXT) if code.startswith(beginning)]


def test_each_step_is_shown_by_a_command() -> None:
    assert len(steps()) == 12
    for name, items in steps().items():
        assert items, name
        for item in items:
            assert any(SHOWS.match(code) for code in CODE.findall(item)), f"{name}: {item}"


def test_every_choice_of_tests_has_a_test() -> None:
    chosen = re.findall(r"pytest ([\w/.]+\.py)(?: -k (\w+))?", TEXT)
    assert len(chosen) > 20
    for path, words in chosen:
        content = Path(ROOT, path).read_text()
        assert re.search(rf"def test_\w*{words or ''}", content), f"{path} -k {words}"


def test_every_job_of_the_finalizer_is_one_with_these_arguments() -> None:
    lines = commands("python -m services.finalizer ")
    assert len(lines) >= 4
    for line in lines:
        given = parser().parse_args(shlex.split(line)[3:])
        assert given.run is not None


def test_every_other_module_is_run_as_it_can_be() -> None:
    assert {line for line in commands("python -m ") if "services.finalizer" not in line} == {
        "python -m deploy.database",
        "python -m deploy.rights",
        "python -m deploy.topics",
        "python -m services.dashboard begin-again ADDRESS",
        "python -m services.serving repair",
        "python -m services.serving repair --refill",
    }


def test_every_object_of_a_kubectl_command_is_in_the_manifests() -> None:
    declared = {f"{each['kind'].lower()}/{each['metadata']['name']}": each for each in objects()}
    lines = commands("kubectl ")
    assert len(lines) >= 6
    for line in lines:
        words = line.split()
        if words[1:3] == ["apply", "-k"]:
            assert Path(words[3]).name in OVERLAYS
            continue
        assert words[1:3] == ["-n", "playhead"], line
        if named := re.search(r"(statefulset|deployment)/\w+", line):
            workload = declared[named[0]]["spec"]["template"]["spec"]
            containers = {one["name"] for one in workload["containers"]}
            assert set(re.findall(r"(\w+)=…", line)) <= containers, line
        if "hpa/" in line:
            assert f"horizontalpodautoscaler/{re.findall(r'hpa/(.+?) ', line)[0]}" in declared, line
        if "delete pvc" in line:
            claims = declared["statefulset/processor"]["spec"]["volumeClaimTemplates"]
            assert {f"{claim['metadata']['name']}-processor-2" for claim in claims} & set(words)


@pytest.mark.parametrize(
    "settings",
    [CollectorSettings, ProcessorSettings, VideoViewsSettings, FinalizerSettings, ServingSettings, DashboardSettings],
)
def test_every_setting_that_it_names_is_one(settings: Any) -> None:
    prefix = settings.variable("")
    known = {settings.variable(name) for name in settings.model_fields}
    assert set(re.findall(rf"`({prefix}[A-Z_]+)`", TEXT)) <= known


def test_every_metric_that_it_names_is_one() -> None:
    names = {each.name for each in vars(metrics).values() if isinstance(each, metrics.Metric)}
    for named in re.findall(r"`(playhead_\w+)`", TEXT):
        assert named in names, named
