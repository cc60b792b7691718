"""The modules that a screen is made of, as the page's files import them.

A screen's document names all of them. So browsers fetch them together, instead of one level of imports after the other.
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Final

from services.dashboard.page.bundle import ENTRY, packages

SCREENS: Final = "core/place/screens.js"
_SCREEN: Final = re.compile(r'name: "([a-z]*)".*import\("([./\w]+)"\)')
#: Imports of a module; those that are asked for later are not among them.
_IMPORT: Final = re.compile(r'\bfrom\s*"([\w./@-]+)"')
_END_OF_MAP: Final = "</script>"


def documents(document: str, texts: Mapping[str, str]) -> dict[str, str]:
    """`document` for each screen by its name, with links to the screen's modules behind its import map. `texts` are the files."""
    named = packages(document)
    before, end, after = document.partition(_END_OF_MAP)
    return {
        name: before
        + end
        + "".join(f'\n    <link rel="modulepreload" href="/static/{path}">' for path in paths)
        + after
        for name, screen in _SCREEN.findall(texts[SCREENS])
        for paths in (_imported([ENTRY, _beside(SCREENS, screen)], named, texts),)
    }


def _imported(wanted: list[str], named: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """These modules and all that they import, each once. Raises `KeyError` for one that is no file."""
    found: dict[str, None] = {}
    while wanted:
        path = wanted.pop(0)
        if path not in found:
            if path not in texts:
                raise KeyError(
                    f"{path}, which a screen imports, is no file of the page: `make setup` fetches those in vendor/"
                )
            found[path] = None
            wanted += [named[name] if name in named else _beside(path, name) for name in _IMPORT.findall(texts[path])]
    return list(found)


def _beside(path: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
