"""The page's modules as one file: served only while it is of its sources."""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import structlog.testing
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from deploy import page_bundle
from services.accounts.http.access import Routing
from services.dashboard.page import bundle
from services.dashboard.page.routes import STATIC, Pages

#: All screens and the map; the library of charts is apart.
BYTES_MAX = 100_000
DOCUMENT = """
<script type="importmap">
  {"imports": {"lib": "/static/vendor/lib.mjs", "lib/more": "/static/vendor/more.mjs"}}
</script>
<script type="module" src="/static/main.js"></script>
"""
SOURCES = {"index.html": DOCUMENT.encode(), "main.js": b'import "lib";\n', "vendor/lib.mjs": b"export {};\n"}
CHARTS = f"{bundle.FOLDER}/charts.js"
OWN = {bundle.PATH: f'import("/static/{CHARTS}");'.encode(), bundle.MAP: b"{}", CHARTS: b"export {};"}


def whole(files: dict[str, bytes]) -> dict[str, bytes]:
    """`files` with a manifest of them."""
    return {**files, bundle.MANIFEST: json.dumps({"hashes": bundle.hashes(files)}).encode()}


FILES = whole({**SOURCES, **OWN, "styles/one.css": b"", "vendor/shapes.json": b"[]"})


def changed(change: dict[str, bytes | None]) -> dict[str, bytes]:
    """`FILES` with other contents; None is a file that is gone."""
    return {path: body for path, body in {**FILES, **change}.items() if body is not None}


def test_packages_are_those_of_the_import_map() -> None:
    assert bundle.packages(DOCUMENT) == {"lib": "vendor/lib.mjs", "lib/more": "vendor/more.mjs"}
    with pytest.raises(ValueError, match="no import map"):
        bundle.packages("<p>none</p>")


def test_a_bundle_is_of_the_files_whose_hashes_its_manifest_has() -> None:
    assert bundle.is_of(FILES)
    # Files that are no modules may change.
    assert bundle.is_of(changed({"styles/one.css": b"p {}", "vendor/shapes.json": None}))


@pytest.mark.parametrize(
    "change",
    [
        {"main.js": b'import "lib"; '},
        {"main.js": None},
        {"vendor/lib.mjs": b"export const forged = 1;"},
        {"screens/new.js": b""},
        {"index.html": DOCUMENT.replace("vendor/lib.mjs", "vendor/other.mjs").encode()},
        {bundle.PATH: None},
        {bundle.PATH: b""},
        {bundle.PATH: OWN[bundle.PATH][:-5]},
        {bundle.PATH: b"\xff\xfe"},
        {bundle.MAP: None},
        {bundle.MAP: b"\xff"},
        {CHARTS: None},
        {CHARTS: b"export {"},
    ],
)
def test_a_bundle_of_other_files_or_a_damaged_one_is_not_of_these(change: dict[str, bytes | None]) -> None:
    assert not bundle.is_of(changed(change))


@pytest.mark.parametrize("path", ["main.js", bundle.PATH, CHARTS])
def test_a_manifest_without_what_a_bundle_needs_is_of_no_bundle(path: str) -> None:
    assert not bundle.is_of(whole({one: body for one, body in {**SOURCES, **OWN}.items() if one != path}))


@pytest.mark.parametrize(
    "text",
    [
        None,
        FILES[bundle.MANIFEST][:-9],
        *(
            b"",
            b"no JSON",
            b"[]",
            b"7",
            b'""',
            b"null",
            b"{}",
            b'{"hashes": []}',
            b'{"hashes": {}}',
            b'{"hashes": null}',
        ),
        b"\xff\xfe{",
        b"[" * 100_000,
    ],
)
def test_a_manifest_that_cannot_be_read_is_of_no_bundle(text: bytes | None) -> None:
    assert not bundle.is_of(changed({bundle.MANIFEST: text}))


def test_what_a_set_up_is_just_making_is_no_part_of_the_page(tmp_path: Path) -> None:
    for path in ("main.js", bundle.PATH, f"{bundle.UNFINISHED}/page.js"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    assert bundle.read(tmp_path).keys() == {"main.js", bundle.PATH}


def test_with_a_bundle_a_document_has_one_script() -> None:
    text = bundle.of_bundle(DOCUMENT)
    assert "importmap" not in text
    assert text.count("<script") == 1
    assert f'<script type="module" src="/static/{bundle.PATH}"></script>' in text


@pytest.mark.thorough
def test_the_bundle_of_the_page_has_all_screens_and_says_where_licences_are(tmp_path: Path) -> None:
    program = page_bundle.bundler()
    assert program is not None, "make setup fetches it"
    static = shutil.copytree(STATIC, tmp_path / "static", ignore=shutil.ignore_patterns(bundle.FOLDER))
    page_bundle.make(program, static)

    files = bundle.read(static)
    assert bundle.is_of(files)
    screens = files["core/place/screens.js"].count(b"load: () =>")
    assert sum("/screens/" in one for one in json.loads(files[bundle.MAP])["sources"]) >= screens
    charts = f"{bundle.FOLDER}/uPlot.esm.js"
    assert f'import("/static/{charts}")'.encode() in files[bundle.PATH]
    assert not bundle.is_of({**files, "vendor/uPlot.esm.js": b"another version"})
    for path in (bundle.PATH, charts):
        assert files[path].startswith(b"/*! Built on preact, "), path
    assert (static / "vendor/preact.mjs.LICENSE").exists()
    assert len(gzip.compress(files[bundle.PATH])) < BYTES_MAX
    assert [path.name for path in static.glob(f"{bundle.FOLDER}*")] == [bundle.FOLDER]


def test_a_page_that_cannot_be_bundled_keeps_the_bundle_that_it_has(tmp_path: Path) -> None:
    program = page_bundle.bundler()
    assert program is not None, "make setup fetches it"
    (tmp_path / "index.html").write_text(DOCUMENT)
    (tmp_path / "main.js").write_text("import {")
    (tmp_path / bundle.FOLDER).mkdir()
    (tmp_path / bundle.PATH).write_text("old")

    with pytest.raises(subprocess.CalledProcessError):
        page_bundle.make(program, tmp_path)

    assert (tmp_path / bundle.PATH).read_text() == "old"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page with a new bundle. Tests change copies of it."""
    program = page_bundle.bundler()
    assert program is not None, "make setup fetches it"
    ignored = shutil.ignore_patterns(bundle.FOLDER, "*.json", "*.LICENSE")
    static = shutil.copytree(STATIC, tmp_path_factory.mktemp("page") / "static", ignore=ignored)
    page_bundle.make(program, static)
    return static


def _damaged(static: Path, change: str) -> None:
    """Files as faults leave them, with the times that they had."""
    path, _, how = change.partition(" ")
    file = static / path
    kept = file.stat()
    if how == "gone":
        file.unlink()
        return
    body = file.read_bytes()
    file.write_bytes(
        {"empty": b"", "cut": body[: len(body) // 2], "binary": b"\xff" + body, "edited": body + b"\n"}[how]
    )
    os.utime(file, ns=(kept.st_atime_ns, kept.st_mtime_ns - 1_000_000_000))


CHANGES = [
    f"{path} {how}" for path in (bundle.PATH, bundle.MAP, bundle.MANIFEST) for how in ("gone", "empty", "cut", "binary")
]
CHANGES += [f"{bundle.FOLDER}/uPlot.esm.js {how}" for how in ("gone", "cut")]
CHANGES += [f"{path} edited" for path in ("main.js", "index.html", "vendor/preact.mjs", "parts/html.js")]


@pytest.mark.thorough
@pytest.mark.parametrize("change", ["", *CHANGES])
async def test_a_stale_or_damaged_bundle_is_not_served_and_set_up_again(
    made: Path, tmp_path: Path, change: str
) -> None:
    static = shutil.copytree(made, tmp_path / "static")
    if change:
        _damaged(static, change)
    with structlog.testing.capture_logs() as logged:
        document = await _document_of(static)

    assert [one["event"] for one in logged] == (["page_not_bundled"] if change else [])
    assert (f'src="/static/{bundle.PATH}"' in document) == (not change)
    # Modules one by one: the entry, behind links to all that it imports.
    assert ('src="/static/main.js"' in document and 'href="/static/parts/html.js"' in document) == bool(change)
    assert page_bundle.is_made(static) == (not change)


def test_a_bundle_of_another_program_is_made_again(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_bundle.is_made(made)
    (tmp_path / "packages.txt").write_text("esbuild 0.0.1")
    monkeypatch.setattr(page_bundle, "_MAKERS", (Path(page_bundle.__file__), tmp_path / "packages.txt"))
    assert not page_bundle.is_made(made)
    # A dashboard serves it: it is of the page.
    assert bundle.is_of(bundle.read(made))


@pytest.mark.parametrize("is_made", [True, False])
def test_a_check_makes_nothing_and_says_by_its_exit_code_whether_there_is_a_bundle(
    monkeypatch: pytest.MonkeyPatch, is_made: bool
) -> None:
    monkeypatch.setattr("sys.argv", ["page_bundle", "--check"])
    monkeypatch.setattr(page_bundle, "is_made", lambda: is_made)
    monkeypatch.setattr(page_bundle, "make", lambda _: pytest.fail("it was made"))
    assert page_bundle.main() == (0 if is_made else 1)


async def _document_of(static: Path) -> str:
    """What the dashboard answers to a browser that opens it, with its pages from this folder."""
    routing = Routing(web.Application())
    Pages(static).add_to(routing)
    async with TestClient(TestServer(routing.app)) as client:
        return await (await client.get("/")).text()
