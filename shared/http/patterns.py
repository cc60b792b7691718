"""Patterns of whole texts, as msgspec searches for them and JSON Schema states them."""

from typing import Final

#: `$` is also before a line break that ends the text (in Python): `acme` and a line break would be a customer's id.
_END: Final = r"(?![\s\S])"


def whole(pattern: str) -> str:
    """The pattern that only a text has which matches `pattern` from its first character to its last."""
    return f"^(?:{pattern}){_END}"
