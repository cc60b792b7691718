"""Releases: which player release a beacon is of, also one that is rejected, as far as it can be read. Pure, bounded.

A release is the player's version, or else that of its SDK. Most beacons say only what changed, so a view's release is remembered.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from shared.schemas.live import SLICE_VALUE_CHARS_MAX

View = tuple[str | None, str | None]

#: Attributes that name the player's version, and its SDK's.
_PLAYER: Final = ("player_software_version", "player_version")
_SDK: Final = ("mux_embed_version", "player_mux_plugin_version")
_SDK_PREFIX: Final = "SDK "
#: The same in a body, where it could not be read: mux-embed's short names too (`services.collector.intake.mux.names`).
_TEXT: Final = rb'"\s*:\s*"([^"\\\x00-\x1f]{1,64})"'
_PLAYER_IN: Final = re.compile(rb'"(?:pswve|player_software_version|player_version)' + _TEXT)
_SDK_IN: Final = re.compile(rb'"(?:memve|mux_embed_version|pmxpive|player_mux_plugin_version)' + _TEXT)
_VIEW_IN: Final = re.compile(rb'"(?:xid|view_id|sessionId)' + _TEXT)
#: Of a body, or of one rejected beacon, so many bytes are looked at.
LOOKED_AT_BYTES: Final = 4_096
#: Views whose release is remembered, in each of two generations.
REMEMBERED_MAX: Final = 65_536


def release_of(attrs: Mapping[str, Any]) -> str:
    """The release that the attributes of a beacon name; empty where they name none."""
    get = attrs.get
    for name in _PLAYER:
        if (value := get(name)) and (text := _clean(value)):
            return text
    for name in _SDK:
        if (value := get(name)) and (text := _clean(value)):
            return _SDK_PREFIX + text
    return ""


def release_in(beginning: bytes) -> str:
    """The release that the beginning of a body, or of an input, names; empty where it names none."""
    text = beginning[:LOOKED_AT_BYTES]
    if (found := _PLAYER_IN.search(text)) and (name := _clean(found[1].decode("utf-8", "replace"))):
        return name
    if (found := _SDK_IN.search(text)) and (name := _clean(found[1].decode("utf-8", "replace"))):
        return _SDK_PREFIX + name
    return ""


def view_in(beginning: bytes) -> str | None:
    """The view that the beginning of a body names first."""
    found = _VIEW_IN.search(beginning[:LOOKED_AT_BYTES])
    return found[1].decode("utf-8", "replace") if found else None


class Releases:
    """The release of each view that named one lately: two generations of views, the elder dropped whole."""

    def __init__(self, remembered_max: int = REMEMBERED_MAX) -> None:
        self._max = remembered_max
        self._young: dict[int, str] = {}
        self._old: dict[int, str] = {}

    def of(self, view: View) -> str:
        """The release of a view (customer id, view id); empty where it is not known."""
        # Python's hash of a text has a secret key: a client cannot make two views collide.
        key = hash(view)
        known = self._young.get(key)
        if known is None and (known := self._old.get(key)) is not None:
            self._put(key, known)
        return known or ""

    def remember(self, view: View, release: str) -> None:
        """The view has named its release."""
        self._put(hash(view), release)

    def _put(self, key: int, release: str) -> None:
        if len(self._young) >= self._max and key not in self._young:
            self._young, self._old = {}, self._young
        self._young[key] = release


def _clean(value: object) -> str:
    """A text that can name a slice; empty for anything else."""
    if not isinstance(value, str):
        return ""
    text = value[: SLICE_VALUE_CHARS_MAX - len(_SDK_PREFIX)].strip()
    return text if text.isprintable() else ""
