"""Writes the page's lines to paste from docs/clients.md: `python -m deploy.client_lines`. A test holds them current."""

import json
import re
import sys
from dataclasses import dataclass
from typing import Final

from deploy.demo.viewers.clients_doc import block_to_paste
from deploy.glossary import plain
from deploy.local.paths import ROOT

LINES: Final = ROOT / "services" / "dashboard" / "static" / "core" / "words" / "client_lines.js"


@dataclass(frozen=True)
class Client:
    """A client that the page offers. Its heading in docs/clients.md begins with `heading`."""

    name: str
    heading: str
    language: str = "js"
    #: Empty: as the heading says it.
    title: str = ""


CLIENTS: Final = (
    Client("mux-embed", "mux-embed"),
    Client("mux-player", "Mux Player", "html"),
    Client("mux-android", "Mux Android", "kotlin"),
    Client("mux-ios", "Mux iOS", "swift"),
    Client("mux-roku", "Mux Roku", "brightscript"),
    Client("hls.js", "hls.js"),
    Client("dash.js", "dash.js"),
    Client("shaka", "Shaka Player"),
    Client("epas", "EPAS", title="EPAS (Eyevinn's SDKs)"),
    Client("native", "Native", title="any other player in a page"),
)
_TEXT: Final = """\
// @ts-check
// Written by `python -m deploy.client_lines` from the blocks of docs/clients.md: do not edit.

/** `text` has the document's names in place of one's own. `note` is what the document says below the lines. */
export const CLIENTS = {clients};
"""


def clients() -> list[dict[str, str]]:
    """Each client's lines as they stand in the document, and what it says of them."""
    found = []
    for client in CLIENTS:
        block = block_to_paste(client.heading, client.language)
        found.append(
            {
                "name": client.name,
                "title": client.title or plain(block.heading),
                "note": plain(_below(block.after)),
                "text": block.text.rstrip("\n"),
            }
        )
    return found


def module() -> str:
    """The module as it is to be."""
    return _TEXT.replace("{clients}", json.dumps(clients(), indent=2, ensure_ascii=False))


def _below(after: str) -> str:
    """The first paragraph; none where it leads to another block."""
    paragraph = re.sub(r"\s+", " ", after.strip().split("\n\n")[0]).strip()
    return "" if paragraph.endswith(":") or paragraph.startswith("<!--") else paragraph


if __name__ == "__main__":
    LINES.write_text(module(), encoding="utf-8")
    sys.stdout.write(f"{LINES.relative_to(ROOT)}\n")
