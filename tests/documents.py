"""The fenced blocks of the documents, each with the comment above it that says who runs it.

<!-- run by PATH -->      the test at PATH runs the block as it stands in the document
<!-- checked by PATH -->  the test at PATH checks it without running it (a cluster, a phone or a television is needed)
<!-- output -->           it shows what a reader sees: nothing to run
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.paths import ROOT

#: In which a reader may copy a block and run it. Each needs one of the three comments.
RUNNABLE: Final = frozenset(
    {"sh", "python", "json", "sql", "js", "html", "http", "toml", "kotlin", "swift", "brightscript"}
)
#: Diagrams, and output that has no language.
PLAIN: Final = frozenset({"text"})
_FENCE: Final = re.compile(
    r"^(?P<comment>[^\n]*)\n(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_COMMENT: Final = re.compile(r"<!-- (?:(?P<how>run|checked) by (?P<test>[\w/.]+)|(?P<output>output)) -->")


@dataclass(frozen=True)
class Block:
    """One fenced block. `test` is the path of the test that runs or checks it, None for output or without a comment."""

    document: str
    line: int
    language: str
    text: str
    how: str | None
    test: str | None

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"{self.document}:{self.line}"


def documents() -> list[Path]:
    """Every document of the project."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "loadtest/README.md", ROOT / "bench/README.md"]
    return sorted(found)


def blocks(document: Path) -> list[Block]:
    """The blocks of a document in their order."""
    content = document.read_text()
    found = []
    for match in _FENCE.finditer(content):
        comment = _COMMENT.fullmatch(match["comment"].strip())
        indent = match["indent"]
        found.append(
            Block(
                document=str(document.relative_to(ROOT)),
                line=content[: match.start("language")].count("\n") + 1,
                language=match["language"],
                text="".join(line.removeprefix(indent) for line in match["text"].splitlines(keepends=True)),
                how=None if comment is None else comment["how"] or "output",
                test=None if comment is None else comment["test"],
            )
        )
    return found


def all_blocks() -> list[Block]:
    """The blocks of every document."""
    return [block for document in documents() for block in blocks(document)]


def run_by(test_file: str, language: str | None = None) -> list[Block]:
    """The blocks that name this test (its `__file__`), of one language or of all."""
    path = str(Path(test_file).relative_to(ROOT))
    return [
        block
        for block in all_blocks()
        if (block.how, block.test) == ("run", path) and language in (None, block.language)
    ]
