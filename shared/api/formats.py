"""Recognizes the format of a text: JSON Schema's formats, words of an enumeration, and parts of a path that are data."""

import ipaddress
import re
from typing import Final

#: A word that may be a value of an enumeration.
WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
_TEXT_CHARS_MAX: Final = 256
SEGMENTS_MAX: Final = 20
SEGMENT_CHARS_MAX: Final = 100

#: Each of the formats has one of these characters.
_PUNCTUATION: Final = re.compile(r"[-:@.]")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_DATE: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
_DATE_TIME: Final = re.compile(_DATE.pattern + r"[Tt ][0-2]\d:[0-5]\d:[0-6]\d(?:\.\d+)?(?:[Zz]|[+-][0-2]\d:[0-5]\d)")
_TIME: Final = re.compile(r"[0-2]\d:[0-5]\d:[0-6]\d(?:\.\d+)?(?:[Zz]|[+-][0-2]\d:[0-5]\d)")
_EMAIL: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s]+")
_IPV4: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_IPV6: Final = re.compile(r"[0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*")
_INTEGER: Final = re.compile(r"-?\d{1,20}")
_HEX: Final = re.compile(r"(?=.*\d)[0-9a-fA-F]{8,128}")
#: Letters and digits mixed at length: what a program made up.
_TOKEN: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_~=-]{16,}")
#: How the frameworks write a part of a route that is data: `{id}`, `:id`, `<int:id>`, `*`.
_ROUTE_PART: Final = re.compile(r"\{.*\}|:.+|<.+>|\*+")


def format_of(text: str) -> str:
    """The format of JSON Schema that `text` has; "" where it has none."""
    if len(text) > _TEXT_CHARS_MAX or len(text) < 2 or _PUNCTUATION.search(text) is None:
        return ""
    for name, pattern in (
        ("uuid", _UUID),
        ("date", _DATE),
        ("date-time", _DATE_TIME),
        ("time", _TIME),
        ("uri", _URI),
        ("email", _EMAIL),
    ):
        if pattern.fullmatch(text):
            return name
    if _IPV4.fullmatch(text) or _IPV6.fullmatch(text):
        try:
            return f"ipv{ipaddress.ip_address(text).version}"
        except ValueError:
            return ""
    return ""


def segment_of(segment: str) -> str:
    """A part of a path: `{form}` where it is data (`{integer}`, `{uuid}`, `{email}` …), else itself."""
    if _INTEGER.fullmatch(segment):
        return "{integer}"
    if found := format_of(segment):
        return f"{{{found}}}"
    if _HEX.fullmatch(segment) or _TOKEN.fullmatch(segment):
        return "{token}"
    if _ROUTE_PART.fullmatch(segment):
        return "{route}"
    return segment


def path_of(path: str) -> list[str] | None:
    """The parts of a path, its query left out; None for one that is no path or has too many parts."""
    path = path.partition("?")[0].partition("#")[0]
    parts = [segment_of(part[:SEGMENT_CHARS_MAX]) for part in path.split("/") if part]
    return parts if path.startswith("/") and len(parts) <= SEGMENTS_MAX else None
