"""Cells of CSV that people open in a spreadsheet: no text of a client is a formula there (OWASP, "CSV Injection")."""

from typing import Final

#: What a spreadsheet takes for the beginning of a formula.
BEGINS: Final = "=+-@\t\r"


def plain(text: str) -> str:
    """The text, behind an apostrophe where it would be a formula. Numbers are no texts: -1 stays."""
    return f"'{text}" if text[:1] and text[0] in BEGINS else text
