"""The modules of all screens as one file, which `make setup` makes: a first load asks for one file instead of some fifty.
The library of charts is a file beside it, which no figure waits for.

A bundle has a manifest: the hashes of the files that it was made of, and of its own. It is served only if they are those of the
page's files, so nobody sees an old or a damaged page. Otherwise the modules are served one by one.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

STATIC: Final = Path(__file__).parents[1] / "static"
FOLDER: Final = "bundle"
#: Where one is made, beside `FOLDER`: no part of the page.
UNFINISHED: Final = f"{FOLDER}.new"
PATH: Final = f"{FOLDER}/page.js"
MAP: Final = f"{PATH}.map"
MANIFEST: Final = f"{FOLDER}/manifest.json"
ENTRY: Final = "main.js"
IMPORT_MAP: Final = re.compile(r'<script type="importmap">(.*?)</script>\s*', re.DOTALL)
_DOCUMENT: Final = "index.html"
_MODULES: Final = (".js", ".mjs")
#: What a module of a bundle names of it.
_NAMED: Final = re.compile(rf"/static/({FOLDER}/[\w./-]+)".encode())


def read(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their path in it. A bundle that is replaced meanwhile may lack some."""
    found = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and path.relative_to(folder).parts[0] != UNFINISHED:
                found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def packages(document: str) -> dict[str, str]:
    """By the name that modules import, the file of each package, as the import map of `document` has it.

    Raises `ValueError` for a document without an import map.
    """
    found = IMPORT_MAP.search(document)
    if found is None:
        raise ValueError("the page's document has no import map")
    return {name: path.removeprefix("/static/") for name, path in json.loads(found[1])["imports"].items()}


def hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    """By path the hashes of what a bundle is made of, and of its own files. `files` are those of the page by their path.

    It is made of all modules, and of the page's document, which has the import map. A manifest has no hash of itself.
    """
    counted = (path for path in files if path == _DOCUMENT or path.endswith(_MODULES) or path.startswith(f"{FOLDER}/"))
    return {path: hashlib.sha256(files[path]).hexdigest() for path in counted if path != MANIFEST}


def is_of(files: Mapping[str, bytes]) -> bool:
    """Whether `files` have a whole bundle that was made of them: its manifest has the hashes of these files, and of no others.

    Its entry is there, and every file of it that the entry names. An unreadable manifest counts as missing.
    """
    named = {one.decode() for one in _NAMED.findall(files.get(PATH, b""))}
    return {ENTRY, PATH, *named} <= files.keys() and manifest(files).get("hashes") == hashes(files)


def manifest(files: Mapping[str, bytes]) -> dict[str, Any]:
    """What the bundle's manifest says; empty if it is missing or cannot be read."""
    try:
        found = json.loads(files[MANIFEST])
    except (KeyError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def of_bundle(document: str) -> str:
    """`document` with the bundle in place of its entry module. It needs no import map then."""
    return IMPORT_MAP.sub("", document).replace(f'src="/static/{ENTRY}"', f'src="/static/{PATH}"')
