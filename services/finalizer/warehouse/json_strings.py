"""Finds a string in JSON bytes as a whole value, with any escaping of its characters; or in bytes that are no JSON. Pure."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from services.accounts.core.deletions import TELLING_BYTES

#: A string from its quote to the next, or to where the text ends. Without the latter, each escaped quote in a string without an end
#: would begin another try up to the end.
_STRING: Final = re.compile(rb'"((?:[^"\\]++|\\.)*+)("|\\?\Z)', re.DOTALL)
_AFTER_A_NAME: Final = re.compile(rb"\s*:")
_VALUE: Final = re.compile(rb"\s*")
_WORD: Final = rb"[A-Za-z0-9]"


def holds_value(text: bytes, wanted: str) -> bool:
    """Whether a string value (no member's name) of the JSON text is `wanted`; a text that is cut off is read to where it ends.

    Strings and escapes as in RFC 8259, section 7.
    """
    plain = wanted.encode("utf-8", "surrogatepass")
    for found in _strings(text):
        content = found[1]
        is_it = _decoded(content) == wanted if b"\\" in content else content == plain
        if is_it and _AFTER_A_NAME.match(text, found.end()) is None:
            return True
    return False


def holds_anywhere(text: bytes, wanted: str) -> bool:
    """Whether `holds_value`; or, of bytes that are no JSON text, whether they hold `wanted` as they are or percent-encoded."""
    if holds_value(text, wanted):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        plain = wanted.encode("utf-8", "surrogatepass")
        whole = re.escape(plain)
        if len(plain) < TELLING_BYTES:
            whole = b"(?<!%b)%b(?!%b)" % (_WORD, whole, _WORD)
        return any(re.search(whole, one) is not None for one in (text, unquote_to_bytes(text.replace(b"+", b" "))))
    return False


def holds_member(text: bytes, names: Collection[str], wanted: str) -> bool:
    """Whether a member of one of these names has the string value `wanted`, at any depth of the JSON text."""
    value_at = -1
    for found in _strings(text):
        colon = _AFTER_A_NAME.match(text, found.end())
        if colon is not None:
            is_named = _decoded(found[1]) in names
            value_at = _VALUE.match(text, colon.end()).end() if is_named else -1  # type: ignore[union-attr]
        elif found.start() == value_at and _decoded(found[1]) == wanted:
            return True
    return False


def _strings(text: bytes) -> Iterator[re.Match[bytes]]:
    """Whole ones: what is cut off is no value."""
    return (found for found in _STRING.finditer(text) if found[2] == b'"')


def _decoded(content: bytes) -> str | None:
    try:
        return str(json.loads(b'"' + content + b'"', strict=False))
    except ValueError:
        return None
