"""The second factor: codes that change every 30 s (RFC 6238, by pyotp), and recovery codes for a lost device. Pure."""

import base64
import hashlib
import re
from collections.abc import Sequence
from typing import Final

import pyotp

STEP_SECONDS: Final = 30
#: RFC 4226, 4: at least 128 bits, better 160.
SECRET_BYTES: Final = 20
#: A clock may be so many steps behind or ahead.
STEPS_OFF_MAX: Final = 1
RECOVERY_CODES: Final = 10
RECOVERY_BYTES: Final = 10
_CODE: Final = re.compile(r"[0-9]{6}", re.ASCII)
_RECOVERY: Final = re.compile(r"[a-z2-7]{16}", re.ASCII)


class CodeWrong(ValueError):
    """The code is wrong, old, or was taken already."""


def secret_of(random: bytes) -> str:
    """The secret that an app is given, from `SECRET_BYTES` random bytes."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"{len(random)} random bytes instead of {SECRET_BYTES}")
    return base64.b32encode(random).decode()


def address_of(secret: str, *, email: str, issuer: str) -> str:
    """The address that an app reads, as a link or a QR code (`otpauth:`)."""
    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=issuer)


def step_of(secret: str, code: str, now_seconds: float, *, after_step: int) -> int:
    """The step whose code this is, later than `after_step`: a code is taken once. Raises `CodeWrong`."""
    plain = code.replace(" ", "")
    if not _CODE.fullmatch(plain):
        raise CodeWrong("a code has six digits")
    now_step = int(now_seconds) // STEP_SECONDS
    totp = pyotp.TOTP(secret)
    for step in range(now_step - STEPS_OFF_MAX, now_step + STEPS_OFF_MAX + 1):
        if step > after_step and pyotp.utils.strings_equal(plain, totp.generate_otp(step)):
            return step
    raise CodeWrong("the code is wrong, old, or was used already")


def recovery_codes(random: bytes) -> list[str]:
    """Codes that each work once, from `RECOVERY_CODES * RECOVERY_BYTES` random bytes."""
    cut: Sequence[bytes] = [
        random[at : at + RECOVERY_BYTES] for at in range(0, RECOVERY_CODES * RECOVERY_BYTES, RECOVERY_BYTES)
    ]
    return [base64.b32encode(one).decode().lower() for one in cut]


def recovery_hash(code: str) -> bytes | None:
    """The stored hash of a recovery code; None for a text that cannot be one."""
    plain = code.replace(" ", "").replace("-", "").lower()
    return hashlib.sha256(plain.encode()).digest() if _RECOVERY.fullmatch(plain) else None
