"""mux-embed's short field names spelled out: `xwati` is `view_watch_time`.

A name's words follow each other without a separator: the first as one letter, later ones as two, an integer as its digits. A word
that the tables do not have stays itself between underscores (`_word_`; as the first word, `word_`).
"""

import re
from typing import Any, Final

from services.collector.intake.mux.words import FIRST_WORDS, LATER_WORDS
from services.collector.intake.post import InvalidInput

NAMES_REMEMBERED_MAX: Final = 8_192
NAME_CHARS_MAX: Final = 128
#: `env_key`, and Roku's `property_key`.
_KEY: Final = re.compile(rb'"(?:ake|property_ke)"\s*:\s*"([A-Za-z0-9_-]{1,64})"')


def key_in(beginning: bytes) -> str:
    """The write key that the beginning of a body names first; empty where it names none."""
    found = _KEY.search(beginning)
    return found[1].decode() if found else ""


def full_name(short: str) -> str:
    """The full name of a short one. What the tables cannot spell out is returned as it is."""
    first = FIRST_WORDS.get(short[:1])
    if first is not None:
        later = _later_words(short, 1)
        if later is not None:
            return "_".join([first, *later])
    # A first word that has no letter is written in full, closed by an underscore.
    unknown, underscore, _ = short.partition("_")
    if unknown and underscore:
        later = _later_words(short, len(unknown) + 1)
        if later:
            return "_".join([unknown, *later])
    return short


def _later_words(short: str, start: int) -> list[str] | None:
    words = []
    position = start
    while position < len(short):
        if short[position] == "_":
            end = short.find("_", position + 1)
            if end <= position + 1:
                return None
            words.append(short[position + 1 : end])
            position = end + 1
        elif short[position] in "0123456789":
            end = position + 1
            while end < len(short) and short[end] in "0123456789":
                end += 1
            words.append(short[position:end])
            position = end
        else:
            word = LATER_WORDS.get(short[position : position + 2])
            if word is None:
                return None
            words.append(word)
            position += 2
    return words


class FullNames:
    """Short names to full ones, remembered in two generations: players use some 200 names, over and over.

    When the younger generation is full it becomes the elder one, and what only the former elder held is forgotten. A name
    that is in use comes back from the elder into the younger, so invented names cannot push it out.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._elder: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._known) + len(self._elder)

    def __contains__(self, short: str) -> bool:
        """Whether the name costs no more than a look."""
        return short in self._known

    def spelled_out(self, event: dict[str, Any]) -> dict[str, Any]:
        """`event` under full names; raises `InvalidInput` when a name is longer than any field's."""
        known = self._known
        try:
            return {known[short]: value for short, value in event.items()}
        except KeyError:
            return {self._learned(short): value for short, value in event.items()}

    def _learned(self, short: str) -> str:
        name = self._known.get(short)
        if name is not None:
            return name
        if len(short) > NAME_CHARS_MAX:
            raise InvalidInput("too_large", f"a field name of {len(short)} characters; {NAME_CHARS_MAX} are the most")
        name = self._elder.get(short) or full_name(short)
        if len(self._known) >= NAMES_REMEMBERED_MAX // 2:
            self._elder, self._known = self._known, {}
        self._known[short] = name
        return name
