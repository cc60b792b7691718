"""Every figure of the documents is what the committed result files say."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.report import capacity, documents, results
from bench.report.figures import FULL, RATE, STREAMS_FULL
from bench.report.results import FOLDER, Part, adopt, keep, read


@pytest.mark.parametrize("file", sorted(documents.written()), ids=lambda file: file.name)
def test_a_document_has_the_figures_of_the_result_files(file: Path) -> None:
    assert file.read_text() == documents.written()[file], "run `python -m bench.report`"


def test_every_result_is_shown_and_dated() -> None:
    shown = "".join(file.read_text() for file in documents.written())
    for file in FOLDER.glob("*.json"):
        part = read(file)
        assert part.name == file.stem
        assert part.date, file.name
        assert part.machine, file.name
        assert part.command in shown, part.command


def test_a_missing_row_or_column_is_named() -> None:
    part = Part(name="p", title="", command="", checked="", compared=[], lines=["| a | 1,200 |", "|---|---|"])
    assert part.number("a", 1) == 1_200
    for row, column in (("b", 1), ("a", 2)):
        with pytest.raises(LookupError, match="result p has no row"):
            part.cell(row, column)


def test_a_run_of_this_machine_replaces_the_committed_result_unless_that_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "HOME", tmp_path / "home")
    monkeypatch.setattr(results, "FOLDER", tmp_path / "committed")
    keep(Part(name="e2e", title="", command="", checked="", compared=[], lines=["first"]))
    assert adopt() == ["e2e"]
    kept = read(tmp_path / "committed" / "e2e.json")
    assert (kept.lines, bool(kept.date), bool(kept.machine)) == (["first"], True, True)
    newer = (tmp_path / "committed" / "e2e.json").read_text().replace(kept.date, "2999-01-01")
    (tmp_path / "committed" / "e2e.json").write_text(newer)
    assert adopt() == []


def test_the_cost_of_a_million_viewers_names_the_peer_of_the_full_fold_where_a_run_has_it() -> None:
    committed = {file.stem: read(file) for file in FOLDER.glob("*.json")}
    processor = committed["processor"]
    row = f"| {STREAMS_FULL} | 50,000 | 1 | 1 | 1 | 1 | 1 |"
    with_peer = replace(processor, lines=[line for line in processor.lines if STREAMS_FULL not in line] + [row])
    ours = 1e5 / processor.number(FULL, RATE)
    lines = capacity.million(committed | {"processor": with_peer})
    assert f"| cores: processing, the full fold of one client there | {ours:.2f} | 2.00 |" in lines
