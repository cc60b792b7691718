"""The modules of all screens as one file, which `make setup` makes: a first load asks for one file instead of some fifty.
The library of charts is a file beside it, which no figure waits for.

A bundle has the texts of its modules in its source map. It is served only if they are those of the page's files, so nobody sees
an old page. Otherwise the modules are served one by one.
"""

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Final

FOLDER: Final = "bundle"
PATH: Final = f"{FOLDER}/page.js"
MAP: Final = f"{PATH}.map"
ENTRY: Final = "main.js"
IMPORT_MAP: Final = re.compile(r'<script type="importmap">(.*?)</script>\s*', re.DOTALL)


def packages(document: str) -> dict[str, str]:
    """By the name that modules import, the file of each package, as the import map of `document` has it.

    Raises `ValueError` for a document without an import map.
    """
    found = IMPORT_MAP.search(document)
    if found is None:
        raise ValueError("the page's document has no import map")
    return {name: path.removeprefix("/static/") for name, path in json.loads(found[1])["imports"].items()}


def is_of(texts: Mapping[str, str]) -> bool:
    """Whether there is a bundle of these files. `texts` are the page's files by their path, the bundle and its map among them."""
    maps = [json.loads(text) for path, text in texts.items() if path.startswith(f"{FOLDER}/") and path.endswith(".map")]
    sources = [one for known in maps for one in zip(known["sources"], known["sourcesContent"], strict=True)]
    return {PATH, MAP} <= texts.keys() and all(texts.get(_path(source)) == text for source, text in sources)


def of_bundle(document: str) -> str:
    """`document` with the bundle in place of its entry module. It needs no import map then."""
    return IMPORT_MAP.sub("", document).replace(f'src="/static/{ENTRY}"', f'src="/static/{PATH}"')


def _path(source: str) -> str:
    """A source as the map names it, from its own folder, as a path of the page's files."""
    return posixpath.normpath(posixpath.join(FOLDER, source))
