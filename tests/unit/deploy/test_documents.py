"""The commands of the documents for operators are there: tests, modules, words of make, overlays; and the sums are right."""

import re
import subprocess
from itertools import chain
from pathlib import Path

import pytest
import yaml

from bench.report import capacity
from bench.report.results import FOLDER, read
from deploy.kubernetes.manifests import OVERLAYS
from deploy.local.paths import ROOT
from shared.topics import BEACONS, PROFILES

DOCUMENTS = ("runbook", "capacity", "images", "kubernetes", "observability")
_SECONDS_A_DAY = 86_400
_VIEW_SECONDS = 600


def text(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_test_that_a_document_names_is_there(name: str) -> None:
    for path, chosen in re.findall(r"pytest ([\w/.]+\.py)(?: -k (\w+))?", text(name)):
        content = (ROOT / path).read_text()
        assert re.search(rf"def test_\w*{chosen}", content), f"{path} -k {chosen}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_module_that_a_document_runs_is_there(name: str) -> None:
    for module in re.findall(r"python -m ([a-z_]+(?:\.[a-z_]+)+)", text(name)):
        path = Path(ROOT, *module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_word_of_make_that_a_document_says_is_one(name: str) -> None:
    words = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"`make ([a-z-]+)", text(name))) <= set(words)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_somewhere(name: str) -> None:
    for target in re.findall(r"\]\((?!https:)([^)#]+)", text(name)):
        assert (ROOT / "docs" / target).exists(), target


def test_every_heading_that_the_runbook_points_to_is_one() -> None:
    runbook = text("runbook")
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", runbook, re.M)}
    assert set(re.findall(r"\]\(#([^)]+)\)", runbook)) <= headings


def test_the_runbook_has_every_step_of_an_operator() -> None:
    steps = ("Upgrade", "Roll back", "Scale out and in", "Replace a disk", "Lost broker", "Poison beacon")
    for step in chain(steps, ("Reprocess a day", "Restore from nothing")):
        assert f"\n### {step}\n" in text("runbook")


def test_overlays_are_those_of_the_document() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \|", text("kubernetes"), re.M)) == set(OVERLAYS)


def test_the_rules_come_to_kubernetes_as_they_are() -> None:
    command = re.search(r"^\(printf .*\)", text("kubernetes"), re.M)
    assert command is not None
    made = subprocess.run(["bash", "-c", command[0]], cwd=ROOT, capture_output=True, text=True, check=True)
    rule = yaml.safe_load(made.stdout)
    assert rule["kind"] == "PrometheusRule"
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy/observability/rules.yaml").read_text())


def test_the_sums_of_the_capacity_table_are_right() -> None:
    days = (BEACONS.retention_ms or 0) / 1_000 / _SECONDS_A_DAY
    rows = re.findall(
        r"^\| ([\d,]+) \| ([\d,]+) / ([\d,]+) \| (\d+) \| (\d+) .*\| (\d+)[^|]*\| (\d+) \| ([\d.]+) TB",
        text("capacity"),
        re.M,
    )
    assert [int(row[0].replace(",", "")) for row in rows] == [10_000, 100_000, 1_000_000]
    # The page rounds the measured rates down.
    measured = capacity.planned({file.stem: read(file) for file in FOLDER.glob("*.json")})
    assert 0.85 * measured["collector"] <= 10_000 <= 1.15 * measured["collector"]
    assert 0.9 * measured["slot"] <= 29_000 <= measured["slot"]
    assert measured["bronze"] / 2 >= 20_000
    assert measured["views"] / 2 >= 1_600
    assert measured["hour_us"] == pytest.approx(28, abs=1)
    for viewers, steady, planned, collectors, slots, finalizer, partitions, terabytes in rows:
        rate = int(steady.replace(",", ""))
        assert rate == int(viewers.replace(",", "")) / 10
        assert int(planned.replace(",", "")) == 2 * rate
        assert int(partitions) == PROFILES["production"].view_partitions
        assert float(terabytes) == pytest.approx(rate * 356 * days * _SECONDS_A_DAY * 3 / 1e12, rel=0.08)
        assert int(slots) >= max(2, 2 * 2 * rate / 29_000)
        assert int(collectors) >= max(2, 2 * rate / 10_000)
        ended = int(viewers.replace(",", "")) / _VIEW_SECONDS
        large_hours = 2 * 28e-6 * ended * 3_600 / 60
        assert int(finalizer) >= max(2, (2 * rate / 20_000 + 2 * ended / 1_600 + large_hours) * 4 / 3)


def test_every_figure_of_the_capacity_page_has_a_command() -> None:
    tables = text("capacity").partition("## How large")[0]
    rows = [line for line in tables.splitlines() if line.startswith("| ") and not line.startswith("| what")]
    for row in (row for row in rows if not row.startswith("| service")):
        command = row.rstrip(" |").rpartition(" | ")[2]
        assert command == "the same" or "`.venv/bin/python -m bench." in command or "`make " in command, row
