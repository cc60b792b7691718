"""Targets: where a receiver of each kind is reached, and what it may be named. Pure checks of what people enter."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from services.alerts.messages.words import TemplateWrong, check_template
from services.rim.http.signing import SecretWrong, key_of

TEMPLATE_CHARS_MAX: Final = 4_000
ADDRESSES_MAX: Final = 20
_ADDRESS_CHARS_MAX: Final = 2_000
_SECRET_CHARS_MIN: Final = 16
#: By kind, what a receiver is given; all texts.
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "webhook": ("url", "secret"),
    "slack": ("url",),
    "teams": ("url",),
    "pagerduty": ("routing_key",),
    "email": (),
}
KINDS: Final = tuple(_PARTS)


class ReceiverWrong(ValueError):
    """The receiver cannot be sent to; the argument says why."""


def checked_target(kind: str, target: Mapping[str, Any]) -> dict[str, Any]:
    """Where a receiver of this kind is reached. Raises `ReceiverWrong`, which quotes nothing of it."""
    parts = _PARTS.get(kind)
    if parts is None:
        raise ReceiverWrong(f"a kind is one of {', '.join(KINDS)}")
    if kind == "email":
        return {"to": _addresses(target.get("to"))}
    allowed = {*parts, *(["url"] if kind == "pagerduty" else [])}
    if not set(parts) <= target.keys() <= allowed:
        raise ReceiverWrong(f"a receiver of kind {kind} has {' and '.join(parts)}")
    if not all(isinstance(one, str) and 0 < len(one) <= _ADDRESS_CHARS_MAX for one in target.values()):
        raise ReceiverWrong(f"texts of 1 to {_ADDRESS_CHARS_MAX} characters")
    if "url" in target:
        _check_url(target["url"])
    if kind == "webhook" and len(target["secret"]) < _SECRET_CHARS_MIN:
        raise ReceiverWrong(f"a secret has at least {_SECRET_CHARS_MIN} characters")
    try:
        key_of(target.get("secret", ""))
    except SecretWrong as error:
        raise ReceiverWrong(str(error)) from None
    return dict(target)


def check_words(name: str, template: str | None) -> None:
    """Whether a receiver may have this name and template. Raises `ReceiverWrong`."""
    if not 0 < len(name.strip()) <= 200 or not name.isprintable():
        raise ReceiverWrong("a name has 1 to 200 characters that can be shown")
    if len(template or "") > TEMPLATE_CHARS_MAX:
        raise ReceiverWrong(f"a template has at most {TEMPLATE_CHARS_MAX} characters")
    try:
        check_template(template or "")
    except TemplateWrong as error:
        raise ReceiverWrong(str(error)) from None


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        # As the resolver will read it: no label of it is empty or too long.
        (parts.hostname or "").encode("idna")
    except ValueError:
        is_right = False
    if not is_right or not url.isprintable() or " " in url:
        raise ReceiverWrong("url is an address that begins with https:// or http:// and a host")


def _addresses(given: Any) -> list[str]:
    is_list = isinstance(given, list) and 0 < len(given) <= ADDRESSES_MAX
    if not is_list or not all(isinstance(one, str) and _is_address(one) for one in given):
        raise ReceiverWrong(f"to is a list of 1 to {ADDRESSES_MAX} e-mail addresses")
    return list(given)


def _is_address(text: str) -> bool:
    local, at, domain = text.partition("@")
    plain = text.isascii() and text.isprintable() and not set(text) & set(' ,;<>"()[]\\:')
    return bool(local and at and domain) and "@" not in domain and plain and len(text) <= 254
