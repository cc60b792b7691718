"""The lines that the page gives to paste are the whole blocks of docs/clients.md, which real players run."""

from deploy.client_lines import CLIENTS, LINES, clients, module
from deploy.local.paths import ROOT
from tests.documents import blocks


def test_the_lines_of_the_page_are_as_the_document_is() -> None:
    assert LINES.read_text(encoding="utf-8") == module(), "run: python -m deploy.client_lines"


def test_every_client_has_a_whole_block_that_a_test_runs_or_checks() -> None:
    document = {block.text.rstrip("\n") for block in blocks(ROOT / "docs/clients.md") if block.test}
    for client in clients():
        assert client["text"] in document, client["name"]


def test_every_client_of_the_document_with_a_block_can_be_chosen() -> None:
    text = (ROOT / "docs/clients.md").read_text()
    sections = text.split("\n## ")[1:]
    # What is pasted stands before how views are signed; "Other CMCD players" has no lines of its own.
    headings = [one.partition("\n")[0] for one in sections if "```" in one]
    of_players = headings[: headings.index("Signed views")]
    for heading in of_players:
        assert any(heading.startswith(client.heading) for client in CLIENTS), heading


def test_what_is_said_below_the_lines_is_the_paragraph_there_and_leads_to_nothing() -> None:
    notes = {client["name"]: client["note"] for client in clients()}
    assert notes["epas"].startswith("Give it a sessionId")
    assert notes["native"] == ""
    assert not [note for note in notes.values() if note.endswith(":")]
