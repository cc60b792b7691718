"""Signs messages so that receivers can verify them: headers and signature of Standard Webhooks 1.0.0. Pure.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md. The signature is HMAC-SHA256 of
`<id>.<seconds>.<body>`; the timestamp in it prevents the replay of a recorded message.
"""

import base64
import binascii
import hmac
from typing import Final

_PREFIX: Final = "whsec_"


class SecretWrong(ValueError):
    """What follows `whsec_` is no base64."""


def key_of(secret: str) -> bytes:
    """The key behind a secret: the bytes after `whsec_`, or the text itself. Raises `SecretWrong`, which does not quote it."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise SecretWrong("what follows whsec_ is no base64") from None


def headers(key: bytes, message_id: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt at `at_s`, seconds since 1970.

    The id is the same in every attempt: receivers know doubles by it.
    """
    signed = b".".join([message_id.encode(), str(at_s).encode(), body])
    signature = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{signature}",
    }
