"""Texts that people give: addresses and names."""

import re
from typing import Final

_EMAIL: Final = re.compile(r"[^\s@]{1,64}@[^\s@]{1,189}")
NAME_CHARS_MAX: Final = 200


class TextWrong(ValueError):
    """A name or an address is not valid; the text says which."""


def checked_email(text: str) -> str:
    """An e-mail address as accounts have it. Raises `TextWrong`."""
    email = text.strip().lower()
    if not _EMAIL.fullmatch(email) or not email.isprintable():
        raise TextWrong("an account's name is an e-mail address")
    return email


def checked_name(text: str, what: str) -> str:
    """A name that can be shown. Raises `TextWrong`."""
    name = text.strip()
    if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
        raise TextWrong(f"{what} has 1 to {NAME_CHARS_MAX} characters that can be shown")
    return name
