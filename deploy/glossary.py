"""Writes the page's glossary from the table "Definitions" of docs/view.md: `python -m deploy.glossary`. A test holds it current."""

import json
import re
import sys
from typing import Final

from deploy.local.paths import ROOT

SOURCE: Final = ROOT / "docs" / "view.md"
GLOSSARY: Final = ROOT / "services" / "dashboard" / "static" / "core" / "words" / "glossary.js"
_COLUMNS: Final = ("name", "formula", "source", "clients", "mux", "cta")
_HEAD: Final = "| metric | formula |"
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")
_TEXT: Final = """\
// @ts-check
// Written by `python -m deploy.glossary` from the table of docs/view.md: do not edit.

export const GLOSSARY = {terms};
"""


def terms(markdown: str) -> list[dict[str, str]]:
    """The rows of the table, as plain text."""
    lines = iter(markdown.splitlines())
    for line in lines:
        if line.startswith(_HEAD):
            break
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [plain(cell) for cell in line.strip("|").split(" | ")]
        found.append(dict(zip(_COLUMNS, cells, strict=True)))
    # What the table says beside a name is for readers of the table.
    return [one | {"name": one["name"].split(":")[0]} for one in found]


def module() -> str:
    """The module as it is to be."""
    found = json.dumps(terms(SOURCE.read_text(encoding="utf-8")), indent=2, ensure_ascii=False)
    return _TEXT.replace("{terms}", found)


def plain(cell: str) -> str:
    """Markdown of one line without its links and marks."""
    return _LINK.sub(r"\1", cell).replace("`", "").replace("**", "").strip()


if __name__ == "__main__":
    GLOSSARY.write_text(module(), encoding="utf-8")
    sys.stdout.write(f"{GLOSSARY.relative_to(ROOT)}\n")
