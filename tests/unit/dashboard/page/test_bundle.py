"""The page's modules as one file: served only while it is of its sources."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy import page_bundle
from services.dashboard.page import bundle
from services.dashboard.page.files import Files
from services.dashboard.page.routes import STATIC

#: All screens and the map; the library of charts is apart.
BYTES_MAX = 90_000
DOCUMENT = """
<script type="importmap">
  {"imports": {"lib": "/static/vendor/lib.mjs", "lib/more": "/static/vendor/more.mjs"}}
</script>
<script type="module" src="/static/main.js"></script>
"""
SOURCES = {"main.js": 'import "lib";\n', "vendor/lib.mjs": "export {};\n"}
MAP = {
    "sources": ["../vendor/lib.mjs", "../main.js"],
    "sourcesContent": [SOURCES["vendor/lib.mjs"], SOURCES["main.js"]],
}
FILES = {**SOURCES, "screens/other.js": "", bundle.PATH: "export{};", bundle.MAP: json.dumps(MAP)}


def test_packages_are_those_of_the_import_map() -> None:
    assert bundle.packages(DOCUMENT) == {"lib": "vendor/lib.mjs", "lib/more": "vendor/more.mjs"}
    with pytest.raises(ValueError, match="no import map"):
        bundle.packages("<p>none</p>")


def test_a_bundle_is_of_the_files_whose_texts_its_map_has() -> None:
    assert bundle.is_of(FILES)


@pytest.mark.parametrize(
    "changed",
    [
        {"main.js": 'import "lib"; '},
        {"vendor/lib.mjs": "export const forged = 1;"},
        {bundle.MAP: None},
        {bundle.PATH: None},
        {"main.js": None},
    ],
)
def test_a_bundle_of_other_files_is_not_of_these(changed: dict[str, str | None]) -> None:
    assert not bundle.is_of({path: text for path, text in {**FILES, **changed}.items() if text is not None})


def test_with_a_bundle_a_document_has_one_script() -> None:
    text = bundle.of_bundle(DOCUMENT)
    assert "importmap" not in text
    assert text.count("<script") == 1
    assert f'<script type="module" src="/static/{bundle.PATH}"></script>' in text


def test_the_bundle_of_the_page_has_all_screens_and_says_where_licences_are(tmp_path: Path) -> None:
    program = page_bundle.bundler()
    assert program is not None, "make setup fetches it"
    static = shutil.copytree(STATIC, tmp_path / "static", ignore=shutil.ignore_patterns(bundle.FOLDER))
    page_bundle.make(program, static)

    texts = Files(static).texts((".html", ".js", ".map", ".mjs"))
    assert bundle.is_of(texts)
    screens = texts["core/place/screens.js"].count("load: () =>")
    assert sum("/screens/" in one for one in json.loads(texts[bundle.MAP])["sources"]) >= screens
    charts = f"{bundle.FOLDER}/uPlot.esm.js"
    assert f'import("/static/{charts}")' in texts[bundle.PATH]
    assert not bundle.is_of({**texts, "vendor/uPlot.esm.js": "another version"})
    for path in (bundle.PATH, charts):
        assert texts[path].startswith("/*! Built on preact, "), path
    assert (static / "vendor/preact.mjs.LICENSE").exists()
    assert len(gzip.compress(texts[bundle.PATH].encode())) < BYTES_MAX
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
