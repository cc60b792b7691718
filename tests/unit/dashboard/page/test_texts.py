"""What the page says to people: no names of inner parts, which only operators know."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from services.dashboard.page import bundle
from services.dashboard.page.routes import STATIC
from services.query.core.metrics import METRICS

SERVICES: Final = STATIC.parents[1]
_INNER: Final = re.compile(
    r"(?<![\w./=&?#-])(?:slot|processor|finalizer|revision|partition|topic|rollup|hot row)s?\b(?![\w=/])", re.IGNORECASE
)
#: A table's rows are what is stored, for those who read it; people who look at video see views.
_STORED: Final = re.compile(r"(?<![\w./&?#-])rows?\b(?![\w=/])", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r'\b(?:scope|class)="[^"]*"')
#: A name in code, as a field's, is no text.
_NAME: Final = re.compile(r"[\w./#?=&:-]*")
_COMMENT: Final = re.compile(r"/\*.*?\*/|(?m:^\s*//[^\n]*$)", re.DOTALL)
#: For operators: their own screen, and the link that only they have.
_OF_OPERATORS: Final = ("pages/partitions.js", "pages/partitions.html")
_LINK_OF_OPERATORS: Final = '<a href="/partitions">Partitions</a>'


def test_no_text_of_the_page_names_inner_parts() -> None:
    assert [one for one in _of_page() if _INNER.search(one[1].replace(_LINK_OF_OPERATORS, ""))] == []
    assert [text for text in _of_metrics() if _INNER.search(text)] == []


def test_no_text_of_the_page_speaks_of_rows() -> None:
    assert [one for one in _of_page() if _STORED.search(_ATTRIBUTE.sub("", one[1]))] == []
    assert [text for text in _of_metrics() if _STORED.search(text)] == []


@pytest.mark.thorough
def test_no_problem_that_the_page_shows_names_inner_parts() -> None:
    folders = (SERVICES / "dashboard", SERVICES / "query" / "http", SERVICES / "accounts" / "http")
    paths = [path for folder in folders for path in folder.rglob("*.py") if path.name != "partitions.py"]
    problems = [(path.name, text) for path in paths for text in _problems(path)]
    assert len(problems) > 20
    assert [one for one in problems if _INNER.search(one[1])] == []


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("const notice = 'the processor does not run';", ["the processor does not run"]),
        ('x = `<p>${found.slot ? `one ${n} slot` : ""} here</p>`;', ["<p> here</p>", "one  slot", ""]),
        ('// a slot\nimport { one } from "./slot.js";', ["./slot.js"]),
    ],
)
def test_texts_are_found_in_code(code: str, texts: list[str]) -> None:
    assert sorted(_strings(_COMMENT.sub("", code))) == sorted(texts)


def _of_metrics() -> list[str]:
    """What the API says of metrics, and the page repeats."""
    return [text for one in METRICS.values() for text in (one.title, one.formula)]


def _of_page() -> Iterator[tuple[str, str]]:
    """Each text of the page with its file, but for those of operators."""
    for path in (path for suffix in ("*.js", "*.html") for path in STATIC.rglob(suffix)):
        name = str(path.relative_to(STATIC))
        if not {"vendor", bundle.FOLDER} & set(path.parts) and name not in _OF_OPERATORS:
            yield from ((name, text.strip()) for text in _texts(path))


def _texts(path: Path) -> Iterator[str]:
    code = path.read_text()
    if path.suffix == ".html":
        yield re.sub(r"<!--.*?-->|<script.*?</script>", "", code, flags=re.DOTALL)
        return
    yield from (text for text in _strings(_COMMENT.sub("", code)) if not _NAME.fullmatch(text))


def _strings(code: str) -> Iterator[str]:
    """The strings of JavaScript, and of its templates what stands outside of `${}`; those within are strings of their own."""
    #: Of each template that is open: its text up to here, and how many braces are open in its `${}`; -1 outside of one.
    templates: list[list[str | int]] = []
    at = 0
    while at < len(code):
        if templates and templates[-1][1] == -1:
            if code[at] == "`":
                yield str(templates.pop()[0])
            elif code.startswith("${", at):
                templates[-1][1], at = 0, at + 1
            else:
                templates[-1][0] = f"{templates[-1][0]}{code[at]}"
            at += 1
            continue
        if code[at] == "`":
            templates.append(["", -1])
        elif code[at] in "\"'" and (found := re.compile(rf"{code[at]}((?:\\.|[^\\\n])*?){code[at]}").match(code, at)):
            yield found[1]
            at = found.end() - 1
        elif templates and code[at] in "{}":
            templates[-1][1] = int(templates[-1][1]) + (1 if code[at] == "{" else -1)
        at += 1


def _problems(path: Path) -> Iterator[str]:
    """Titles and details."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem":
            yield from (str(one.value) for one in (*node.args[1:2], *node.args[3:4]) if isinstance(one, ast.Constant))
