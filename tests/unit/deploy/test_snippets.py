"""Every block of code in a document is run or checked by the test that it names, or is marked as output."""

import re
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest

from deploy.local.paths import ROOT
from tests.documents import PLAIN, RUNNABLE, Block, all_blocks, documents, run_by

HERE = str(Path(__file__).relative_to(ROOT))
BLOCKS = all_blocks()
CHECKED = [block for block in BLOCKS if block.test == HERE]


def test_every_block_has_a_language_and_is_run_checked_or_output() -> None:
    assert len(BLOCKS) > 50
    unknown = [block.place for block in BLOCKS if block.language not in RUNNABLE | PLAIN]
    nobody = [block.place for block in BLOCKS if block.language in RUNNABLE and block.how is None]
    assert (unknown, nobody) == ([], [])


def test_the_fences_of_each_document_are_whole() -> None:
    fences = {str(file): len(re.findall(r"^ *```", file.read_text(), re.M)) for file in documents()}
    found = [str(ROOT / block.document) for block in BLOCKS]
    assert {file: 2 * found.count(file) for file in fences} == fences


def test_every_test_that_a_block_names_reads_the_document() -> None:
    for block in BLOCKS:
        if block.test is not None and block.test != HERE:
            source = (ROOT / block.test).read_text()
            reads = Path(block.document).name in source or "run_by(__file__" in source or "_DOC" in source
            assert reads, f"{block.place}: {block.test} does not read it"


@pytest.mark.parametrize("block", [each for each in CHECKED if each.language == "sh"], ids=lambda block: block.place)
def test_a_command_that_needs_more_than_this_machine_is_well_formed(block: Block) -> None:
    subprocess.run(["bash", "-n", "-c", block.text], check=True)
    words = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"\bmake ([a-z-]+)", block.text)) <= set(words)
    for module in re.findall(r"python -m ([a-z_]+(?:\.[a-z_]+)+)", block.text):
        path = ROOT.joinpath(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    for named in re.findall(r"\b(?:deploy|services|docs|tests|bench)/[\w./-]+", block.text):
        assert (ROOT / named).exists(), named


def test_every_block_that_this_file_runs_is_valid() -> None:
    parsers = {"json": msgspec.json.decode, "toml": tomllib.loads}
    for block in run_by(__file__):
        parsers[block.language](block.text)


def test_every_path_that_a_document_names_exists() -> None:
    # Alone, or within a command such as `pytest tests/unit`.
    path = re.compile(r"(?<!\S)(?:services|shared|deploy|tests|bench|loadtest|docs)/[\w./-]*\w")
    for file in documents():
        for span in re.findall(r"`([^`\n]+)`", file.read_text()):
            for named in path.findall(span):
                assert (ROOT / named).exists(), f"{file.name}: {named}"


@pytest.mark.thorough
def test_every_link_leads_to_a_page_and_heading() -> None:
    for file in documents():
        for target, heading in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", file.read_text()):
            page = (file.parent / target).resolve() if target else file
            assert page.exists(), f"{file.name}: {target}"
            if heading and page.suffix == ".md":
                assert heading in anchors(page), f"{file.name}: {target}#{heading}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).replace(" ", "-") for heading in headings}


def test_decisions_are_sorted_and_in_the_index() -> None:
    index, _, rest = (ROOT / "DECISIONS.md").read_text().partition("\n## Superseded\n")
    areas = {part.partition("\n")[0]: re.findall(r"^### (.*)$", part, re.M) for part in rest.split("\n## ")[1:]}
    new = areas.pop("New entries")
    assert re.findall(r"^\*\*(.*)\*\*$", index, re.M) == list(areas)
    for entries in areas.values():
        dates = [entry[:10] for entry in entries]
        assert dates == sorted(dates)
    titles = [entry.partition(" · ")[2] for entries in areas.values() for entry in entries]
    assert re.findall(r"^- \[(.*)\]\(#", index, re.M) == titles
    assert len(new) < 20, "move entries to their areas"


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "docs/engine.md", "docs/video_views.md", "docs/warehouse.md"])
def test_every_module_that_a_page_about_the_code_names_is_there(name: str) -> None:
    files = [
        str(path.relative_to(ROOT))
        for top in ("services", "shared", "deploy", "tests", "bench")
        for path in (ROOT / top).rglob("*")
    ]
    for named in re.findall(r"`([\w/]+(?:\.py|/))`", (ROOT / name).read_text()):
        assert any(f"/{file}".endswith(f"/{named.rstrip('/')}") for file in files) or (ROOT / named).exists(), named
