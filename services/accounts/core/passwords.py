"""Rules for passwords, after NIST SP 800-63B: long, and not among those tried first. No rule of kinds of characters. Pure."""

from typing import Final

PASSWORD_CHARS_MIN: Final = 12
#: Hashing takes a time that grows with it.
PASSWORD_CHARS_MAX: Final = 256
_DISTINCT_CHARS_MIN: Final = 5
#: What is tried first among long ones: the middle parts of lists of passwords that have leaked.
_TRIED_FIRST: Final = frozenset(
    {
        "administrator",
        "changemechangeme",
        "correcthorsebatterystaple",
        "iloveyouiloveyou",
        "letmeinletmein",
        "password1234",
        "passwordpassword",
        "playheadplayhead",
        "qwertyuiopasdf",
        "qwertyqwerty",
        "qwerty123456",
        "trustno1trustno1",
        "welcomewelcome",
        "123456789012",
        "1234567890ab",
        "1q2w3e4r5t6y",
        "abcdefghijkl",
        "abcd12345678",
        "passw0rdpassw0rd",
        "p@ssw0rd1234",
        "zaq12wsxcde3",
    }
)


class PasswordWeak(ValueError):
    """The password is refused; the text says why, and nothing of the password."""


def check_password(password: str, *, email: str) -> None:
    """Raises `PasswordWeak`."""
    if len(password) < PASSWORD_CHARS_MIN:
        raise PasswordWeak(f"a password has at least {PASSWORD_CHARS_MIN} characters")
    if len(password) > PASSWORD_CHARS_MAX:
        raise PasswordWeak(f"a password has at most {PASSWORD_CHARS_MAX} characters")
    plain = password.casefold()
    if len(set(plain)) < _DISTINCT_CHARS_MIN:
        raise PasswordWeak(f"a password has at least {_DISTINCT_CHARS_MIN} different characters")
    if plain.replace(" ", "") in _TRIED_FIRST:
        raise PasswordWeak("this password is one of those that are tried first")
    name = email.casefold().partition("@")[0]
    if plain in {email.casefold(), name * (len(plain) // max(1, len(name)))}:
        raise PasswordWeak("a password is not the address of its account")
