"""The lines that the page gives to paste are those of docs/clients.md, which real players run."""

import json
import subprocess
from pathlib import Path

from deploy.local.paths import ROOT
from tests.documents import blocks

_MODULE = "services/dashboard/static/core/arrivals.js"


def test_every_snippet_stands_in_the_document_of_clients() -> None:
    script = (
        f"import {{ SNIPPETS, snippetOf }} from {json.dumps(str(Path(ROOT) / _MODULE))};"
        "console.log(JSON.stringify(Object.keys(SNIPPETS).map((name) => snippetOf(name, 'collect.example.com', 'acme'))))"
    )
    run = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, timeout=60, check=True
    )
    found = json.loads(run.stdout)
    document = [block.text for block in blocks(ROOT / "docs/clients.md") if block.how == "run"]
    assert len(found) >= 4
    for text in found:
        assert any(text in block for block in document), text
