"""The short keys of mux-embed: full field names to what goes over the wire.

A name is split at its underscores: the first word becomes one letter, each later word two; numbers stay, and a word without
a short form stays spelled out between underscores. The words are the collector's table, read backwards.
"""

from functools import cache
from typing import Any, Final

from services.collector.intake.mux.words import FIRST_WORDS, LATER_WORDS

_FIRST: Final = {word: letter for letter, word in FIRST_WORDS.items()}
_LATER: Final = {word: letters for letters, word in LATER_WORDS.items()}


@cache
def short_key(name: str) -> str:
    """The wire's key for a full field name: `view_watch_time` is `xwati`."""
    first, *later = name.split("_")
    key = _FIRST.get(first, first + "_")
    for word in later:
        key += word if word.isdigit() else _LATER.get(word, f"_{word}_")
    return key


def shorten(fields: dict[str, Any]) -> dict[str, Any]:
    """The object as mux-embed sends it: short keys, those of URLs last (a cut-off body then loses the least)."""
    names = sorted(fields, key=lambda name: "url" in name.split("_"))
    return {short_key(name): fields[name] for name in names}
