"""The modules that a screen's document names."""

import re

import pytest

from services.dashboard.page.files import Files
from services.dashboard.page.modules import documents
from services.dashboard.page.routes import STATIC

_NAMED = re.compile(r'<link rel="modulepreload" href="/static/([^"]+)">')
DOCUMENT = """
<script type="importmap">{"imports": {"lib": "/static/vendor/lib.mjs"}}</script>
<script src="/static/main.js"></script>
"""
FILES = {
    "main.js": """
        import { one } from "lib";
        import {
          two,
        } from "./parts/two.js";
    """,
    "core/place/screens.js": """
        { name: "", load: () => import("../../screens/now.js") },
        { name: "views", load: () => import("../../screens/views.js") },
    """,
    "parts/two.js": """
        export { one } from "lib";
        import { screens } from "../core/place/screens.js";
        const later = () => import("./later.js");
    """,
    "parts/later.js": "",
    "screens/now.js": 'import { two } from "../parts/two.js";',
    "screens/views.js": "",
    "vendor/lib.mjs": "",
}


def test_a_document_names_what_its_screen_imports_once_and_not_what_is_imported_later() -> None:
    found = {name: sorted(_NAMED.findall(text)) for name, text in documents(DOCUMENT, FILES).items()}

    shared = ["core/place/screens.js", "main.js", "parts/two.js", "vendor/lib.mjs"]
    assert found == {"": sorted([*shared, "screens/now.js"]), "views": sorted([*shared, "screens/views.js"])}


def test_modules_stand_behind_the_import_map_that_names_them() -> None:
    text = documents(DOCUMENT, FILES)[""]
    assert text.index("</script>") < text.index("modulepreload") < text.index('src="/static/main.js"')


def test_an_import_of_what_is_no_file_is_an_error() -> None:
    with pytest.raises(KeyError):
        documents(DOCUMENT, {**FILES, "screens/views.js": 'import { x } from "./gone.js";'})


def test_every_screen_of_the_page_has_its_document() -> None:
    texts = Files(STATIC).texts((".js", ".mjs", ".html"))
    found = documents(texts["index.html"], texts)

    assert len(found) == texts["core/place/screens.js"].count("load: () =>")
    for name, text in found.items():
        # A figure does not wait for the library that draws charts.
        assert "vendor/uPlot.esm.js" not in _NAMED.findall(text), name
        assert {"main.js", "vendor/preact.mjs"} < set(_NAMED.findall(text)), name
