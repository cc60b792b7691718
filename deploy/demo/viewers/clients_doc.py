"""The lines to paste of docs/clients.md and docs/recordings.md: for the demo, the page, and the browser test, which runs them."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.paths import ROOT

CLIENTS_DOC: Final = ROOT / "docs" / "clients.md"
RECORDINGS_DOC: Final = ROOT / "docs" / "recordings.md"
#: The collector's name in the document.
COLLECTOR_NAME: Final = "collect.example.com"


@dataclass(frozen=True)
class Pasted:
    """A block of a document: the heading above it, its lines, and the rest of its section."""

    heading: str
    text: str
    after: str


def block_to_paste(client: str, language: str = "js", document: Path = CLIENTS_DOC) -> Pasted:
    """The first block of `language` under the heading that begins with `client`; `LookupError` without such a block."""
    sections = re.split(r"^## ", document.read_text(), flags=re.MULTILINE)
    for section in sections:
        if section.startswith(client):
            block = re.search(rf"^```{language}\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
            if block is not None:
                return Pasted(section.partition("\n")[0], block[1], section[block.end() :])
    raise LookupError(f"{document.name} has no {language} lines for {client}")


def lines_to_paste(client: str, language: str = "js", document: Path = CLIENTS_DOC) -> str:
    """The lines of that block."""
    return block_to_paste(client, language, document).text


def aimed_at(lines: str, host: str) -> str:
    """The lines for a collector without TLS on `host`, name and port."""
    return lines.replace(f"https://{COLLECTOR_NAME}", f"http://{host}").replace(COLLECTOR_NAME, host)


def snippets(collector_port: int) -> str:
    """What to paste into a web page, so that real players report to this demo."""
    host = f"localhost:{collector_port}"
    shown = {
        "mux-embed": "mux-embed with hls.js (other players: the same without hlsjs and Hls)",
        "hls.js": "hls.js 1.7 alone (CMCD v2 event mode)",
    }
    pastes = [
        f"{title}:\n{textwrap.indent(aimed_at(lines_to_paste(client), host), '    ')}"
        for client, title in shown.items()
    ]
    return "\n".join([*pastes, "Other write keys are made on the page (Integration); all players: docs/clients.md."])
