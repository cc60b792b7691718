"""The intake of session recordings: reads from a request's head what the payload is. It does not read the body."""

import re
from typing import Final

import msgspec

from services.collector.intake.post import InvalidInput, Post, Rules, checked_customer
from shared.chunks import CHUNK_BYTES_MAX, is_header_text
from shared.schemas.recording import SEQUENCE_DIGITS_MAX, SEQUENCE_MAX, SESSION_ID
from shared.schemas.span import DEFAULT_CUSTOMER

_NUMBER: Final = re.compile(rf"[0-9]{{1,{SEQUENCE_DIGITS_MAX}}}")


class Head(msgspec.Struct, frozen=True):
    """One payload of a session, as announced."""

    customer_id: str
    session_id: str
    sequence: int
    content_type: str
    content_encoding: str
    #: Bytes of the body, where the client declares them.
    size_bytes: int | None

    @property
    def chunks(self) -> int:
        """How many chunks it will be; 0 where its size is not known."""
        return -(-(self.size_bytes or 0) // CHUNK_BYTES_MAX)


def head_of(
    post: Post, session_id: str, sequence: str | None, size_bytes: int | None, *, rules: Rules, bytes_max: int
) -> Head:
    """The payload that `post`, whose body is still to come, announces. Raises `InvalidInput`.

    Without a key it is the default customer's, where any key will do.
    """
    customer_id = checked_customer(post.key or DEFAULT_CUSTOMER, post, rules).id
    if SESSION_ID.fullmatch(session_id) is None:
        raise InvalidInput("invalid", f"a session id matches {SESSION_ID.pattern}")
    if sequence is None or _NUMBER.fullmatch(sequence) is None:
        raise InvalidInput("invalid", f"sequence is not a number from 0 to {SEQUENCE_MAX}")
    if size_bytes is not None and size_bytes > bytes_max:
        raise InvalidInput("too_large", f"{size_bytes} bytes; {bytes_max} are the most")
    if size_bytes == 0:
        raise InvalidInput("invalid", "the payload is empty")
    for name, text in (("Content-Type", post.content_type), ("Content-Encoding", post.content_encoding)):
        if not is_header_text(text):
            raise InvalidInput("invalid", f"{name} is too long, or not ASCII")
    return Head(customer_id, session_id, int(sequence), post.content_type, post.content_encoding, size_bytes)
