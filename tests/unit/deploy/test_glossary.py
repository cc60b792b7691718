"""The page's glossary is the table of docs/view.md."""

from deploy.glossary import GLOSSARY, module, terms


def test_the_glossary_is_as_the_table_is() -> None:
    assert GLOSSARY.read_text(encoding="utf-8") == module(), "run: python -m deploy.glossary"


def test_links_and_marks_of_the_table_become_plain_text() -> None:
    table = (
        "# x\n| metric | formula | s | c | m | t |\n|---|---|---|---|---|---|\n"
        "| a b: **shown** | `x` / V | [Mux](y.md#z) | all | – | same |\n\nrest | of | it"
    )
    (found,) = terms(table)
    assert found == {"name": "a b", "formula": "x / V", "source": "Mux", "clients": "all", "mux": "–", "cta": "same"}
