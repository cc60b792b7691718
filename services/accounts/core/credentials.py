"""Credentials: an id and a secret in one text. Only the secret's hash is stored. Pure: random bytes are an argument.

A secret has 256 random bits, so a fast hash is enough: there is nothing to guess from. Passwords are another matter
(`services/accounts/password_hashes.py`).
"""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

ID_BYTES: Final = 8
SECRET_BYTES: Final = 32
_CSRF: Final = b"playhead csrf 1"
_TEXT: Final = re.compile(r"ph([a-z])_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)


class Kind(StrEnum):
    """What a credential is for; a part of its text, so that one is not taken for another."""

    SESSION = "s"
    TOKEN = "t"  # noqa: S105 - no password
    LINK = "l"
    #: Of a login that is under way at an OpenID provider.
    EXTERNAL = "e"


@dataclass(frozen=True)
class Credential:
    """One credential. Its text is shown once, to its holder."""

    kind: Kind
    id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The text that its holder sends."""
        return f"ph{self.kind}_{self.id}_{self.secret}"

    @property
    def hash(self) -> bytes:
        """The hash that is stored."""
        return hashlib.sha256(self.secret.encode()).digest()

    def matches(self, stored_hash: bytes) -> bool:
        """Whether this is the credential whose hash was stored; in constant time."""
        return hmac.compare_digest(self.hash, stored_hash)

    @property
    def csrf(self) -> str:
        """The token that a page of this session sends with each change. The session's secret cannot be derived from it."""
        return hmac.new(self.secret.encode(), _CSRF, hashlib.sha256).hexdigest()

    def is_csrf(self, text: str) -> bool:
        """Whether a page of this session sends `text`; in constant time."""
        return hmac.compare_digest(self.csrf.encode(), text.encode(errors="replace"))


def new_credential(kind: Kind, random: bytes) -> Credential:
    """A credential from `ID_BYTES + SECRET_BYTES` random bytes."""
    if len(random) != ID_BYTES + SECRET_BYTES:
        raise ValueError(f"{len(random)} random bytes instead of {ID_BYTES + SECRET_BYTES}")
    secret = base64.urlsafe_b64encode(random[ID_BYTES:]).rstrip(b"=").decode()
    return Credential(kind, random[:ID_BYTES].hex(), secret)


def parsed_credential(kind: Kind, text: str) -> Credential | None:
    """The credential of this kind that `text` is; None for any other text."""
    found = _TEXT.fullmatch(text)
    return Credential(kind, found[2], found[3]) if found is not None and found[1] == kind else None
