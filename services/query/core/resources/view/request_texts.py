"""The texts of a request that an answer may have: short names, without secrets and without misleading characters. Pure."""

import re
from typing import Any, Final
from urllib.parse import urlsplit

from shared.client_values import scalar

_NAME_CHARS_MAX: Final = 100
_NAME: Final = re.compile(r"[\w ./+-]*", re.ASCII)
_CODE: Final = re.compile(r"[\w .-]{1,50}", re.ASCII)
_HOST: Final = re.compile(r"[\w.:\[\]-]{1,253}", re.ASCII)
#: What ends a path without an extension may be a token.
_FILE: Final = re.compile(r"(?=.{1,80}$)[\w.~+-]+\.(?=[0-9]?[a-z])[a-z0-9]{2,5}", re.ASCII | re.IGNORECASE)
#: Manifests without an extension, as of Smooth Streaming.
_MANIFESTS: Final = frozenset({"index", "manifest", "master", "playlist"})
#: `ot` of CTA-5004.
_KINDS: Final = {
    "m": "manifest",
    "a": "audio",
    "v": "video",
    "av": "audio and video",
    "i": "init",
    "c": "captions",
    "tt": "timed text",
    "k": "key",
    "o": "other",
}


def kind_of(value: Any) -> str:
    """A kind as the client names it; empty for any other value."""
    cut = value[:_NAME_CHARS_MAX] if isinstance(value, str) else ""
    return cut if _NAME.fullmatch(cut) else ""


def cmcd_kind(value: Any) -> str:
    """The kind of CMCD's `ot` in words; empty for any other value."""
    kind = scalar(value)
    return _KINDS.get(kind, "") if isinstance(kind, str) else ""


def host_of(value: Any) -> str:
    """The name of a host; empty for any other value."""
    return value if isinstance(value, str) and _HOST.fullmatch(value) else ""


def place_of(url: Any) -> tuple[str, str]:
    """Host and file of a URL. Who asks, query, fragment and all of the path but its end may be secret, so they are left out."""
    # Some read a backslash as the end of the host, others do not.
    if not isinstance(url, str) or "\\" in url:
        return "", ""
    try:
        parts = urlsplit(url)
        # A password with a slash ends the host early, and one with a question mark too: what follows the colon is no port.
        is_place = parts.scheme in ("http", "https", "") and "@" not in parts.path and (parts.port or 0) >= 0
        host = host_of(parts.hostname) if is_place else ""
    except ValueError:
        return "", ""
    file = parts.path.rpartition("/")[2] if is_place else ""
    return host, file if file.lower() in _MANIFESTS or _FILE.fullmatch(file) else ""


def code_of(value: Any) -> str | None:
    """The status or code of a request that failed."""
    value = scalar(value)
    is_code = isinstance(value, int | str) and not isinstance(value, bool)
    return str(value) if is_code and _CODE.fullmatch(str(value)) else None
