"""Signed views: a token that a customer's server makes for one view, and its check.

A token is `<expires>.<signature>`. The first is the end of its validity in seconds since 1970. The second is the HMAC-SHA256 (RFC
2104) of `<customer id>:<view id>:<expires>` in hexadecimal digits, under one of the customer's signing keys. Pure.
"""

import hashlib
import hmac
import re
from typing import Final

from services.collector.intake.sender.customers import Customer

#: A token is valid for no longer, so that a lost one is of little use.
VALID_SECONDS_MAX: Final = 86_400
TOKEN_CHARS_MAX: Final = 80
_TOKEN: Final = re.compile(r"([0-9]{1,11})\.([0-9a-f]{64})")


def token_of(signing_key: str, customer_id: str, view_id: str, expires: int) -> str:
    """The token of a view. `expires` is in seconds since 1970."""
    return f"{expires}.{_signature(signing_key, customer_id, view_id, expires)}"


def is_signed(token: str, customer_id: str, view_id: str, terms: Customer, now_ms: int) -> bool:
    """Whether the token is valid for this view now: it is neither expired nor valid for too long."""
    found = _TOKEN.fullmatch(token)
    if found is None:
        return False
    expires = int(found[1])
    if not 0 < expires * 1_000 - now_ms <= VALID_SECONDS_MAX * 1_000:
        return False
    expected = (_signature(key, customer_id, view_id, expires) for key in terms.signing_keys)
    return any(hmac.compare_digest(one, found[2]) for one in expected)


def _signature(signing_key: str, customer_id: str, view_id: str, expires: int) -> str:
    # A customer id holds no colon and the end is a number, so no two views have the same text.
    text = f"{customer_id}:{view_id}:{expires}"
    return hmac.new(signing_key.encode(), text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
