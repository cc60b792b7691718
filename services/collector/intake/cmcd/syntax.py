"""The syntax of a CMCD record: a dictionary of structured fields (RFC 8941), as JSON values.

Lenient where players differ from the RFC: keys and strings may hold any letter, and blanks may surround commas. Values become
JSON as follows: a number, string, token or flag is itself; a bare key is `true`; bytes are their base64. An inner list is a list
of [item, parameters]. The parameters are null for none, the name of a single bare one (`5000;v` is [5000, "v"]), and otherwise an
object. An item with parameters outside a list is a list of one. Parameters of a list are dropped.

Patterns are possessive: no pattern backtracks, so matching is linear and needs no extra memory.
"""

import re
from typing import Final

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

#: Members of one record, repeated keys counted each time.
MEMBERS_MAX: Final = 1_000
#: Items of one inner list, and parameters of one item. Players send up to about ten.
ITEMS_MAX: Final = 256
PARAMETERS_MAX: Final = 32

_BLANKS = r"[ \t]*+"
_KEY_CHARS = r"[A-Za-z*][A-Za-z0-9_\-.*]*+"
_WORD_CHARS = r"[A-Za-z*][A-Za-z0-9!#$%&'*+\-.^_`|~:/]*+"

_OWS: Final = re.compile(_BLANKS)
_KEY: Final = re.compile(_KEY_CHARS)
#: A whole member of the commonest kinds (number, string, token, flag, list of one number), and the comma or the end behind it.
_PLAIN_MEMBER: Final = re.compile(
    rf"({_KEY_CHARS})"
    rf'(?:=(?:(-?[0-9]{{1,18}})|"([^"\\\x00-\x1f\x7f]*+)"|({_WORD_CHARS})|\((-?[0-9]{{1,18}})(?:;({_KEY_CHARS}))?\)))?'
    rf"{_BLANKS}(?:,{_BLANKS}|(\n))"
)
_BARE: Final = re.compile(
    rf"""(?P<decimal>-?[0-9]{{1,15}}\.[0-9]{{1,15}})
      | (?P<integer>-?[0-9]{{1,18}})
      | "(?P<string>(?:[^"\\\x00-\x1f\x7f]++|\\["\\])*+)"
      | (?P<token>{_WORD_CHARS.replace("#", "[#]")})
      | \?(?P<flag>[01])
      | :(?P<bytes>[A-Za-z0-9+/=]*+):
      | @(?P<date>-?[0-9]{{1,15}})""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(.)")


class CmcdSyntaxError(ValueError):
    """The text is no dictionary; the message says where it stops being one."""


def parsed_dictionary(line: str) -> dict[str, Json]:
    """The members of a record, a later one of the same key in the place of an earlier; raises `CmcdSyntaxError`."""
    if "\n" in line:
        raise CmcdSyntaxError("a record is one line")
    # The line end marks the end, so that looking at the next character never runs off the text.
    text = line + "\n"
    members: dict[str, Json] = {}
    read = 0
    at = _skip_blanks(text, 0)
    while True:
        plain = _PLAIN_MEMBER.match(text, at)
        if plain is not None:
            key, number, string, token, listed, parameter, end = plain.groups()
            at = plain.end()
            if number is not None:
                members[key] = int(number)
            elif listed is not None:
                members[key] = [[int(listed), parameter]]
            else:
                members[key] = token or (True if string is None else string)
        else:
            key, at = _key(text, at)
            members[key], at = _member(text, at)
            at, end = _separator(text, at)
        read += 1
        if read > MEMBERS_MAX:
            raise CmcdSyntaxError(f"more than {MEMBERS_MAX} keys")
        if end:
            return members


def _skip_blanks(text: str, at: int) -> int:
    blanks = _OWS.match(text, at)
    assert blanks is not None
    return blanks.end()


def _separator(text: str, at: int) -> tuple[int, bool]:
    at = _skip_blanks(text, at)
    if text[at] == ",":
        return _skip_blanks(text, at + 1), False
    if text[at] != "\n":
        raise CmcdSyntaxError(f"expected a comma at character {at}")
    return at, True


def _key(text: str, at: int) -> tuple[str, int]:
    key = _KEY.match(text, at)
    if key is None:
        raise CmcdSyntaxError(f"expected a key at character {at}")
    return key.group(), key.end()


def _member(text: str, at: int) -> tuple[Json, int]:
    if text[at] != "=":
        return _with_parameters(text, at, True)
    if text[at + 1] != "(":
        value, at = _bare(text, at + 1)
        return _with_parameters(text, at, value)
    items: list[Json] = []
    at = _skip_blanks(text, at + 2)
    while text[at] != ")":
        value, at = _bare(text, at)
        parameters, at = _parameters(text, at)
        items.append([value, parameters])
        if len(items) > ITEMS_MAX:
            raise CmcdSyntaxError(f"more than {ITEMS_MAX} items in a list")
        if text[at] not in " \t)":
            raise CmcdSyntaxError(f"the list is not closed at character {at}")
        at = _skip_blanks(text, at)
    _, at = _parameters(text, at + 1)
    return items, at


def _with_parameters(text: str, at: int, value: Json) -> tuple[Json, int]:
    if text[at] != ";":
        return value, at
    parameters, at = _parameters(text, at)
    return [[value, parameters]], at


def _parameters(text: str, at: int) -> tuple[Json, int]:
    if text[at] != ";":
        return None, at
    found: dict[str, Json] = {}
    read = 0
    while text[at] == ";":
        key, at = _key(text, _skip_blanks(text, at + 1))
        found[key] = True
        if text[at] == "=":
            found[key], at = _bare(text, at + 1)
        read += 1
        if read > PARAMETERS_MAX:
            raise CmcdSyntaxError(f"more than {PARAMETERS_MAX} parameters")
    if len(found) == 1 and found[key] is True:
        return key, at
    return found, at


def _bare(text: str, at: int) -> tuple[Json, int]:
    match = _BARE.match(text, at)
    if match is None:
        raise CmcdSyntaxError(f"expected a value at character {at}")
    kind, end = match.lastgroup, match.end()
    raw = match.group(kind) if kind else ""
    if kind in {"integer", "date"}:
        return int(raw), end
    if kind == "decimal":
        return float(raw), end
    if kind == "flag":
        return raw == "1", end
    if kind == "string" and "\\" in raw:
        return _ESCAPE.sub(r"\1", raw), end
    return raw, end
