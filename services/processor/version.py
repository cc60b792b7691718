"""The version of an application: a digest of its code, so that two releases never have the same version."""

import hashlib
from pathlib import Path
from typing import Final

import services.processor
import shared

_DIGEST_BYTES: Final = 8


def code_version() -> str:
    """The digest of the engine, the applications and what they share, hexadecimal."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    processor = Path(services.processor.__file__).parent
    for folder in (processor / "engine", processor / "applications", Path(shared.__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\x00" + path.read_bytes())
    return digest.hexdigest()
