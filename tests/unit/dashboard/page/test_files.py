"""The page's files: what browsers get, under which policy, and how much of it a first load takes."""

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from services.dashboard.page import bundle
from services.dashboard.page.files import Files
from services.dashboard.page.routes import STATIC

#: Of the document, and all that it loads before the first screen is drawn.
#: Of modules that come one by one, where nobody has joined them: `tests/integration/page/now/test_now.py` holds what users get.
MODULES_BYTES_MAX = 165_000
_IMPORT = re.compile(r'\b(?:from|import)\s*"([\w./@-]+)"')
_IMPORT_LATER = re.compile(r'\bimport\("([\w./@-]+)"\)')
#: Of these nothing is needed at first: screens are loaded when they are opened, the map and its shapes when its place is seen, and
#: what `later` loads when somebody needs it.
_SEEN_LATER = re.compile(r"/screens/|^\./(countries|lead|new_filter|now_customers)\.js$")
_IN_DOCUMENT = re.compile(r'(?:href|src)="/static/([^"]+)"')
_INPUT = re.compile(r"<input\b(?:\$\{[^}]*\}|=>|[^>])*>")
#: Other inputs are not typed into, or tell each key to what holds their value.
_SAFE = re.compile(r"type=\"(?:checkbox|radio|hidden|submit)\"|onInput=")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    (tmp_path / "index.html").write_text('<script type="importmap">{"imports": {}}</script>')
    (tmp_path / "other.html").write_text("<p>none</p>")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.js").write_text("export const one = 1;\n" * 50)
    app = web.Application()
    app.router.add_get("/static/{path:.+}", Files(tmp_path).serve)
    made = TestClient(TestServer(app), auto_decompress=False)
    await made.start_server()
    yield made
    await made.close()


async def test_a_file_comes_compressed_once_and_then_only_when_it_changed(
    client: TestClient[web.Request, web.Application],
) -> None:
    first = await client.get("/static/parts/one.js", headers={"Accept-Encoding": "gzip"})
    assert (first.status, first.content_type, first.headers["Content-Encoding"]) == (200, "text/javascript", "gzip")
    assert gzip.decompress(await first.read()).startswith(b"export const one")
    again = await client.get("/static/parts/one.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, await again.read()) == (304, b"")
    plain = await client.get("/static/parts/one.js", headers={"Accept-Encoding": "identity"})
    assert (await plain.read()).startswith(b"export const one")


@pytest.mark.parametrize("path", ["parts", "nothing.js", "../secret", "%2e%2e/secret", "parts/../../secret"])
async def test_nothing_else_is_served(
    client: TestClient[web.Request, web.Application], tmp_path: Path, path: str
) -> None:
    (tmp_path.parent / "secret").write_text("secret")
    assert (await client.get(f"/static/{path}")).status == 404


async def test_of_scripts_in_a_document_the_import_map_alone_may_run(
    client: TestClient[web.Request, web.Application],
) -> None:
    with_map = (await client.get("/static/index.html")).headers["Content-Security-Policy"]
    # The digest of {"imports": {}}, by openssl.
    assert "script-src 'self' 'sha256-CJt/FpW3RQlGvqBeO/YK74xrTm1ctS6rLMJu1bV4fMc=';" in with_map
    without = (await client.get("/static/other.html")).headers["Content-Security-Policy"]
    assert "script-src 'self';" in without
    assert "unsafe" not in with_map + without


def test_a_first_load_is_small_and_asks_nobody_else() -> None:
    document = (STATIC / "index.html").read_text()
    modules = dict(re.findall(r'"([^"]+)": "/static/([^"]+)"', document))
    wanted, loaded = ["index.html", *_IN_DOCUMENT.findall(document), "screens/now/now.js"], set[str]()
    while wanted:
        path = wanted.pop()
        if path in loaded:
            continue
        loaded.add(path)
        text = (STATIC / path).read_text()
        assert "https://" not in text or path.startswith("vendor/"), path
        if path.endswith(("js", "mjs")):
            later = [name for name in _IMPORT_LATER.findall(text) if not _SEEN_LATER.search(name)]
            names = [*_IMPORT.findall(text), *later]
            wanted += [modules.get(name) or _beside(path, name) for name in names]
    assert len(loaded) > 20
    assert loaded.isdisjoint({"core/map.js", "vendor/feature.js"})
    assert sum(len(gzip.compress((STATIC / path).read_bytes())) for path in loaded) < MODULES_BYTES_MAX


def _beside(path: str, name: str) -> str:
    return str((STATIC / path).parent.joinpath(name).resolve().relative_to(STATIC))


def test_no_input_of_a_screen_is_given_its_value_at_each_drawing() -> None:
    """Preact sets a `value` whenever it draws: what is being typed would go. `parts/inputs/field.js` and `defaultValue` keep it."""
    modules = [path for path in STATIC.rglob("*.js") if not {"vendor", bundle.FOLDER} & set(path.parts)]
    inputs = [(path.name, one) for path in modules for one in _INPUT.findall(path.read_text())]
    assert len(inputs) > 30
    assert [one for one in inputs if " value=${" in one[1] and not _SAFE.search(one[1])] == []
