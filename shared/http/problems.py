"""Problems: the answer to a request that cannot be executed (RFC 9457, `application/problem+json`)."""

from typing import Final

import msgspec

PROBLEM_JSON: Final = "application/problem+json"
#: Before the last part of each `type`.
TYPES: Final = "urn:playhead:problem:"


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wrong with one part of a request: a member of the body, a header or a parameter."""

    detail: str
    #: A JSON pointer into the body as a URI fragment: `#/email`.
    pointer: str | None = None
    header: str | None = None
    parameter: str | None = None


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One problem. `type` is the last part of its URN."""

    status: int
    title: str
    type: str
    detail: str | None = None
    errors: list[Fault] = []

    def encode(self) -> bytes:
        """The body: JSON."""
        return msgspec.json.encode(msgspec.structs.replace(self, type=TYPES + self.type))
